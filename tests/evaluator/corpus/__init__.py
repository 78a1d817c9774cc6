"""Functions named case_* without arguments: what they return, raise, print and warn is compared between evaluators."""
