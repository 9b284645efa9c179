"""The classifiers, a module each."""
