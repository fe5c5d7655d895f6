r"""Pretrain the starter's encoder and language model within a time budget on one GPU, then int8.

    python scripts/pretrain_starter.py tokens --text wiki.txt --out wiki.u16
    python scripts/pretrain_starter.py encoder --tokens wiki.u16 --held-out val.u16 \
        --seconds 700 --out FIRST
    python scripts/pretrain_starter.py lm --tokens wiki.u16 --held-out val.u16 \
        --seconds 400 --out LM
    python scripts/entity_types.py wiki/*.txt.xz --out typed
    python scripts/pretrain_starter.py types --typed typed --start FIRST \
        --seconds 1120 --lr 7e-4 --out ENCODER

`encoder` hides whole words, `lm` guesses the next one.
`types` trains an encoder further: in half of its rows whole mentions are hidden too, and it also
predicts the entity type of each piece.
Rows are 128 pieces long, then 256 for the last eighth of the time.
docs/models.md describes the training of the shipped models.

The output folder has the three files of each model in `src/seqmix/starter/files`; `types` adds its
head (`types.safetensors`, `types.json`).
`--steps` in place of `--seconds` ends after a number of steps; a few on a CPU make a test.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

import starter_objectives as objectives
from seqmix.starter.loader import TIED, starter_tokenizer
from starter_objectives import Objective

SHORT, LONG, TAIL = 128, 256, 0.12  # sequence lengths, and the share of the time for long ones
WARMUP = 0.03
HELD_OUT, MAX_HELD_OUT = 0.05, 2_000_000  # of the typed pieces, the last ones
TRAINING = {"seconds": 600.0, "steps": 0, "batch": 1024, "lr": 1e-3, "seed": 0}
SHAPE = {"layers": 6, "width": 384, "heads": 12}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    args = parse(arguments)
    if args.what == "tokens":
        pack_text(args.text, args.out)
        return
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    objective, text, held_out = prepare(args, device)
    before = measure(objective, held_out, args.batch)
    steps = train(objective, text, args)
    after = measure(objective, held_out, args.batch)
    print(json.dumps({"before": before, "steps": steps, "after": after}))
    write_int8(objective.model, args.out)
    if args.what == "types":
        heads = {name: value.half().cpu() for name, value in objective.heads.state_dict().items()}
        save_file(heads, args.out / "types.safetensors")
        shutil.copy(args.typed / "types.json", args.out)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="what", required=True)
    inputs = {
        "tokens": ("text",),
        "encoder": ("tokens", "held-out"),
        "lm": ("tokens", "held-out"),
        "types": ("typed", "start"),
    }
    for what, paths in inputs.items():
        command = commands.add_parser(what)
        for path in (*paths, "out"):
            command.add_argument(f"--{path}", type=Path, required=True)
        options = {} if what == "tokens" else TRAINING if what == "types" else TRAINING | SHAPE
        for name, value in options.items():
            command.add_argument(f"--{name}", type=type(value), default=value)
    return parser.parse_args(arguments)


def pack_text(text: Path, out: Path) -> None:
    """Write the piece ids of every line, with a [SEP] behind each."""
    tokenizer = starter_tokenizer()
    with text.open(encoding="utf-8") as lines, out.open("wb") as file:
        for line in lines:
            ids = tokenizer(line, add_special_tokens=False, truncation=False).input_ids
            np.array([*ids, tokenizer.sep_token_id], dtype=np.uint16).tofile(file)


def prepare(args: argparse.Namespace, device: torch.device) -> tuple[Objective, Tensor, Tensor]:
    """Return the objective, the text to train on, and the held-out text."""
    if args.what == "types":
        names = json.loads((args.typed / "types.json").read_text(encoding="utf-8"))
        pieces = torch.stack(
            [read_pieces(args.typed / f"{part}.u16", device) for part in ("ids", "labels")]
        )
        kept = pieces.shape[1] - min(MAX_HELD_OUT, int(HELD_OUT * pieces.shape[1]))
        encoder = objectives.stored_encoder(args.start).to(device)
        objective = objectives.words_and_types(encoder, len(names))
        return objective, pieces[:, :kept], pieces[:, kept:]
    text, held_out = (read_pieces(path, device) for path in (args.tokens, args.held_out))
    if args.what == "lm":
        lm = objectives.new_language_model(args.layers, args.width, LONG).to(device)
        return objectives.next_word(lm), text, held_out
    encoder = objectives.new_encoder(args.layers, args.width, args.heads, LONG).to(device)
    return objectives.hidden_words(encoder), text, held_out


def read_pieces(path: Path, device: torch.device) -> Tensor:
    """Return numbers of two bytes each."""
    return torch.from_numpy(np.fromfile(path, dtype=np.uint16).astype(np.int32)).to(device)


def train(objective: Objective, text: Tensor, args: argparse.Namespace) -> int:
    """Train for the given time or steps, and return the number of steps."""
    parameters = [*objective.model.parameters(), *objective.heads.parameters()]
    optimizer = optimizer_of(parameters, args.lr)
    losses = (
        torch.compile(objective.losses, dynamic=False)
        if text.device.type == "cuda"
        else objective.losses
    )
    objective.model.eval()  # no dropout here, but a tenth in the config for later training
    reported, step = time.monotonic(), 0
    for step, share in enumerate(progress(args.seconds, args.steps), start=1):
        for group in optimizer.param_groups:
            group["lr"] = args.lr * min(share / WARMUP, (1 - share) / (1 - WARMUP))
        length = LONG if share > 1 - TAIL else SHORT
        with precision(text.device):
            parts = losses(*objective.draw(text, max(1, args.batch * SHORT // length), length))
        torch.stack(list(parts.values())).sum().backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if time.monotonic() - reported > 30:
            reported = time.monotonic()
            now = {name: round(loss.item(), 4) for name, loss in parts.items()}
            print(json.dumps({"step": step, "done": round(share, 3), **now}), flush=True)
    return step


def progress(seconds: float, steps: int) -> Iterator[float]:
    """Yield the share done before each step: of the steps if they are given, else of the time."""
    if steps:
        yield from (step / steps for step in range(steps))
        return
    start = time.monotonic()
    while (share := (time.monotonic() - start) / seconds) < 1:
        yield share


def optimizer_of(parameters: Sequence[nn.Parameter], lr: float) -> torch.optim.Optimizer:
    """Return AdamW that decays matrices only."""
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.05},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.98), eps=1e-6, fused=True)


def measure(objective: Objective, held_out: Tensor, batch: int) -> dict[str, float]:
    """Return mean losses and shares of ten fixed batches of held-out text."""
    with torch.random.fork_rng(), torch.no_grad(), precision(held_out.device):
        torch.manual_seed(1)
        batches = [objective.draw(held_out, min(64, batch), SHORT) for _ in range(10)]
        rows = [objective.losses(*batch) | objective.shares(*batch) for batch in batches]
    return {name: round(float(np.mean([row[name].item() for row in rows])), 4) for name in rows[0]}


def precision(device: torch.device) -> AbstractContextManager[object]:
    """Compute in bf16 on a GPU, in float32 elsewhere."""
    return torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else nullcontext()


def write_int8(model: PreTrainedModel, folder: Path) -> None:
    """Write matrices as int8 with a float16 scale per row, the rest as float16, no tied heads."""
    folder.mkdir(parents=True, exist_ok=True)
    stored = {}
    for name, value in model.state_dict().items():
        if name in TIED:
            continue
        value = value.detach().float().cpu()
        if value.dim() == 2 and len(value) > 2:
            scale = (value.abs().amax(1) / 127).clamp(min=1e-8).half()
            stored[name] = (value / scale.float()[:, None]).round().clamp(-127, 127).to(torch.int8)
            stored[f"{name}.scale"] = scale
        else:
            stored[name] = value.half()
    save_file(
        {name: value.contiguous() for name, value in stored.items()},
        folder / "model.int8.safetensors",
    )
    model.config.to_json_file(folder / "config.json")
    starter_tokenizer().backend_tokenizer.save(str(folder / "tokenizer.json"))


if __name__ == "__main__":
    main()
