"""Formulas by family, and the names that lead to them."""
