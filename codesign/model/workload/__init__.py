"""Transformers as data; training and serving steps and their best mapping."""
