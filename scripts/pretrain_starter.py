"""How the starter's encoder and language model were made: pretraining to a wall-clock budget on one GPU, then int8.

    python scripts/pretrain_starter.py tokens --text wiki.txt --out wiki.u16
    python scripts/pretrain_starter.py encoder --tokens wiki.u16 --held-out val.u16 --seconds 700 --out ENCODER
    python scripts/pretrain_starter.py lm --tokens wiki.u16 --held-out val.u16 --seconds 400 --out LM

The shipped models saw 184M tokens of English Wikipedia: the encoder 1.66G tokens with whole-word masking of 20 % (2.71 nats a masked
token held out), the language model 0.78G (3.61 nats a token). Sequences are 128 long, then 256 for the last eighth of the time.
The output folder has the three files that `src/seqmix/starter/files` holds of each model. A few seconds on a CPU are enough to see it run.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel

from seqmix.starter.loader import starter_tokenizer

SHORT, LONG, TAIL = 128, 256, 0.12  # sequence lengths, and the share of the time given to the long ones
WARMUP, MASKED = 0.03, 0.2


def main() -> None:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    tokens = commands.add_parser("tokens", help="text to packed piece ids, two bytes each")
    tokens.add_argument("--text", type=Path, required=True)
    tokens.add_argument("--out", type=Path, required=True)
    for kind in ("encoder", "lm"):
        command = commands.add_parser(kind, help=f"pretrain the {kind}")
        command.add_argument("--tokens", type=Path, required=True)
        command.add_argument("--held-out", type=Path, required=True)
        command.add_argument("--out", type=Path, required=True)
        for name, value in {"seconds": 600.0, "layers": 6, "width": 384, "heads": 12, "batch": 1024, "lr": 1e-3, "seed": 0}.items():
            command.add_argument(f"--{name}", type=type(value), default=value)
    args = parser.parse_args()
    if args.what == "tokens":
        pack_text(args.text, args.out)
    else:
        pretrain(args)


def pack_text(text: Path, out: Path) -> None:
    """Piece ids of every line, a [SEP] behind each."""
    tokenizer = starter_tokenizer()
    with text.open(encoding="utf-8") as lines, out.open("wb") as file:
        for line in lines:
            ids = tokenizer(line, add_special_tokens=False, truncation=False).input_ids
            np.array([*ids, tokenizer.sep_token_id], dtype=np.uint16).tofile(file)


def pretrain(args: argparse.Namespace) -> None:
    """Train until the time is up, say the held-out loss, write the int8 model."""
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train, held_out = (
        torch.from_numpy(np.fromfile(path, dtype=np.uint16).astype(np.int32)).to(device) for path in (args.tokens, args.held_out)
    )
    make = masked_model if args.what == "encoder" else causal_model
    model, loss_of, draw = make(args, device)
    compiled = torch.compile(loss_of, dynamic=False) if device.type == "cuda" else loss_of
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.05},
            {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0},
        ],
        lr=args.lr,
        betas=(0.9, 0.98),
        eps=1e-6,
        fused=True,
    )
    precision = torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else nullcontext()
    start, step, said = time.monotonic(), 0, 0.0
    model.train()
    while (share := (time.monotonic() - start) / args.seconds) < 1:
        length = LONG if share > 1 - TAIL else SHORT
        rate = args.lr * min(share / WARMUP, (1 - share) / (1 - WARMUP))
        for group in optimizer.param_groups:
            group["lr"] = rate
        with precision:
            loss = compiled(*draw(train, max(1, args.batch * SHORT // length), length))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        if time.monotonic() - said > 30:
            said = time.monotonic()
            print(json.dumps({"seconds": round(said - start), "step": step, "loss": round(loss.item(), 4)}), flush=True)
    model.eval()
    torch.manual_seed(1)
    with torch.no_grad(), precision:
        final = float(np.mean([loss_of(*draw(held_out, 64, SHORT)).item() for _ in range(10)]))
    print(json.dumps({"steps": step, "held-out nats": round(final, 4), "perplexity": round(math.exp(final), 2)}))
    write_int8(model, args.out)


def masked_model(
    args: argparse.Namespace, device: torch.device
) -> tuple[nn.Module, Callable[..., Tensor], Callable[..., tuple[Tensor, ...]]]:
    """BERT with whole-word masking: all pieces of a word are hidden together."""
    tokenizer = starter_tokenizer()
    names = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    goes_on = torch.tensor([name.startswith("##") for name in names], device=device)
    special = torch.tensor([name in tokenizer.all_special_tokens for name in names], device=device)
    config = BertConfig(
        vocab_size=len(names), hidden_size=args.width, num_hidden_layers=args.layers, num_attention_heads=args.heads,
        intermediate_size=4 * args.width, max_position_embeddings=LONG, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    model = BertForMaskedLM(config).to(device)

    def draw(source: Tensor, n: int, length: int) -> tuple[Tensor, Tensor, Tensor]:
        ids = _slices(source, n, length)
        word = (~goes_on[ids]).cumsum(1)  # the number of the word each piece belongs to
        rank = torch.gather(torch.rand(n, length + 1, device=device), 1, word) + torch.rand(n, length, device=device) * 1e-4
        at = rank.masked_fill(special[ids], -1).topk(int(MASKED * length), dim=1).indices
        truth, luck = torch.gather(ids, 1, at), torch.rand(n, int(MASKED * length), device=device)
        random = torch.randint(1000, len(names), truth.shape, device=device)
        shown = torch.where(luck < 0.8, tokenizer.mask_token_id, torch.where(luck < 0.9, random, truth))
        return ids.scatter(1, at, shown), at, truth

    def loss(ids: Tensor, at: Tensor, truth: Tensor) -> Tensor:
        states = model.bert(input_ids=ids).last_hidden_state
        states = torch.gather(states, 1, at[..., None].expand(-1, -1, states.shape[-1]))
        return nn.functional.cross_entropy(model.cls(states).float().flatten(0, 1), truth.flatten())

    return model, loss, draw


def causal_model(
    args: argparse.Namespace, device: torch.device
) -> tuple[nn.Module, Callable[..., Tensor], Callable[..., tuple[Tensor, ...]]]:
    """GPT-2; each sequence starts with [CLS] as its BOS."""
    tokenizer = starter_tokenizer()
    config = GPT2Config(
        vocab_size=len(tokenizer), n_embd=args.width, n_layer=args.layers, n_head=max(1, args.width // 64), n_positions=LONG,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    model = GPT2LMHeadModel(config).to(device)

    def draw(source: Tensor, n: int, length: int) -> tuple[Tensor]:
        ids = _slices(source, n, length)
        ids[:, 0] = tokenizer.cls_token_id
        return (ids,)

    def loss(ids: Tensor) -> Tensor:
        states = model.transformer(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
        return nn.functional.cross_entropy(model.lm_head(states).float().flatten(0, 1), ids[:, 1:].flatten())

    return model, loss, draw


def write_int8(model: nn.Module, folder: Path) -> None:
    """Matrices as int8 with a float16 scale a row, the rest as float16; tied heads are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    stored = {}
    for name, value in model.state_dict().items():
        if name in ("lm_head.weight", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"):
            continue
        value = value.detach().float().cpu()
        if value.dim() == 2 and len(value) > 2:
            scale = (value.abs().amax(1) / 127).clamp(min=1e-8).half()
            stored[name] = (value / scale.float()[:, None]).round().clamp(-127, 127).to(torch.int8)
            stored[f"{name}.scale"] = scale
        else:
            stored[name] = value.half()
    save_file({name: value.contiguous() for name, value in stored.items()}, folder / "model.int8.safetensors")
    model.config.to_json_file(folder / "config.json")
    starter_tokenizer().backend_tokenizer.save(str(folder / "tokenizer.json"))


def _slices(source: Tensor, n: int, length: int) -> Tensor:
    start = torch.randint(0, len(source) - length, (n, 1), device=source.device)
    return source[start + torch.arange(length, device=source.device)].long()


if __name__ == "__main__":
    main()
