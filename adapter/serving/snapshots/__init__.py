"""What the pipeline publishes: its form, its way here, and what is held of it."""
