"""Copies of a view outside the warehouse, each kept exactly once: see docs/subscriptions.md."""
