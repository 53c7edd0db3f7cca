"""transformers: AutoTokenizer, AutoModelForSeq2SeqLM, generate."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers

from benchmarks.checks.common import BOS, EOS, PAD, Line, Result, main

transformers.logging.set_verbosity_error()


@torch.inference_mode()
def check(folder: Path, lines: list[Line], begin: int) -> Result:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, local_files_only=True).eval()
    result = Result()
    for line in lines:
        batch = tokenizer(line.text, return_tensors="pt")
        longest = {"max_new_tokens": line.cap + 1, "forced_eos_token_id": None}
        greedy = model.generate(**batch, **longest, num_beams=1)
        beam = model.generate(**batch, **longest, num_beams=5, length_penalty=0.0, early_stopping="never")
        ids = [i - begin for i in batch["input_ids"][0].tolist()]
        assert ids.pop() == EOS
        result.compare(line, ids, answer(greedy), answer(beam))
        scores = model(**batch, decoder_input_ids=torch.tensor([[BOS, *line.greedy]])).logits[0].log_softmax(-1)
        result.measure(line, scores.gather(1, torch.tensor([*line.greedy, EOS])[:, None])[:, 0].tolist())
        decoded = tokenizer.decode([BOS, *line.greedy, EOS], skip_special_tokens=True)
        assert decoded == line.greedy_text, (decoded, line.greedy_text)
    return result


def answer(generated: torch.Tensor) -> list[int]:
    """The ids of an answer, without the marks around it."""
    return [i for i in generated[0].tolist()[1:] if i not in (EOS, PAD)]


if __name__ == "__main__":
    main(check)
