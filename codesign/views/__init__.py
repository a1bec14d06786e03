"""Answers for people: tables, explanations, figures. Nothing here changes anything."""
