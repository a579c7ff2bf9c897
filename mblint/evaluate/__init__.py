"""The evaluator of recipe Python: values, scopes, imports, dataclasses, budgets."""
