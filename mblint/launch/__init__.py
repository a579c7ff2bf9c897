"""Puts a launch together: recipe, overrides, environment and world, to a resolved config."""
