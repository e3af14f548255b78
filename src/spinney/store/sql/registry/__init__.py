"""What each process keeps in memory of what is declared and set (types, queues, holds, webhooks, homes,
capacities), and how it notices that another process has changed it.
"""
