"""Values derived from one resolved launch, one file a subject; names are `subject.fact`."""
