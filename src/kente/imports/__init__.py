"""Other programs' models as runs: Hugging Face layouts of BERT, GPT-2, Marian and M2M100, from safetensors and JSON alone."""
