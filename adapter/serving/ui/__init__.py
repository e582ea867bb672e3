"""The same numbers for people: a page, a table, lines of news."""
