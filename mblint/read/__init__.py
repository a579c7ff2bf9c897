"""Text to documents with spans and comments; knows nothing of Megatron."""
