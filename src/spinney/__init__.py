"""Durable batch processing for people who run long pipelines on machines of their own."""
