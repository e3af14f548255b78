"""Each process's cache of declarations and settings (types, queues, holds, webhooks, homes, capacities), and how it
detects changes by other processes."""
