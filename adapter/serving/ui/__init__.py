"""The user interface: a page, a live table, and a line for each change."""
