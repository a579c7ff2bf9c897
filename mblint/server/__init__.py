"""The language server behind `mblint server`: what editors ask while somebody types.

`app` speaks the protocol, `worker` runs everything that evaluates in one thread, `project` keeps one evaluator warm for each
settings file, `judging` judges again what a change reaches, and one module each makes diagnostics, hovers, lenses, actions and
completions. Only `app`, `convert` and the makers of protocol objects need pygls.
"""
