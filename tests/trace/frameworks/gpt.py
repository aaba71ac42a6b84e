"""A small language model in the manner of nanoGPT, and a loop that trains it; both have places for mistakes."""

from collections.abc import Callable, Iterator
from typing import Any, cast

from dgrr.trace import Keep, record_torch

from .pytorch_runs import torch

nn, F = torch.nn, torch.nn.functional

WIDTH, HEADS, LENGTH, WORDS = 16, 2, 8, 11


def rotated(x: Any, base: float) -> Any:
    """Rotary positions."""
    half = x.shape[-1] // 2
    frequency = 1.0 / base ** (torch.arange(half) / half)
    angle = torch.outer(torch.arange(x.shape[-2], dtype=torch.float32), frequency)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


class CausalAttn(nn.Module):
    def __init__(self, made: dict[str, Any]) -> None:
        super().__init__()
        self.made = made
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        base = self.made.get("rope", 10000.0)
        q, k = rotated(q, base), rotated(k, base)
        scores = q @ k.transpose(-2, -1) * self.made.get("scale", (WIDTH // HEADS) ** -0.5)
        mask = torch.ones(length, length, dtype=torch.bool).tril(self.made.get("diagonal", 0))
        y = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v
        y = y.transpose(1, 2).reshape(batch, length, WIDTH)
        return self.proj(y)


class MLP(nn.Module):
    def __init__(self, made: dict[str, Any]) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.act = nn.GELU(made.get("gelu", "none"))
        self.down = nn.Linear(2 * WIDTH, WIDTH)
        self.drop = nn.Dropout(made.get("dropout", 0.1))

    def forward(self, x: Any) -> Any:
        return self.drop(self.down(self.act(self.up(x))))


class Block(nn.Module):
    def __init__(self, made: dict[str, Any]) -> None:
        super().__init__()
        self.made = made
        self.ln_1 = nn.LayerNorm(WIDTH, eps=made.get("eps", 1e-5))
        self.attn = CausalAttn(made)
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.mlp = MLP(made)

    def forward(self, x: Any) -> Any:
        x = x + self.attn(self.ln_1(x)) * self.made.get("attn_residual", 1.0)
        return x + self.mlp(self.ln_2(x)) * self.made.get("mlp_residual", 1.0)


class GPT(nn.Module):
    def __init__(self, made: dict[str, Any]) -> None:
        super().__init__()
        self.made = made
        self.wte = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList([Block(made) for _ in range(2)])
        self.ln_f = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        if made.get("tied", True):
            self.head.weight = self.wte.weight
        for param in self.parameters():
            if param.ndim > 1:
                nn.init.normal_(param, std=made.get("std", 0.02))

    def forward(self, ids: Any) -> Any:
        x = self.wte(ids[:, :-1]) * self.made.get("embedding", 1.0)
        for block in self.blocks:
            x = self.called(block, x)
        logits = self.head(self.ln_f(x))
        targets = ids[:, 1:] if not self.made.get("shift") else ids[:, :-1]
        reduction = self.made.get("reduction", "mean")
        return F.cross_entropy(logits.reshape(-1, WORDS), targets.reshape(-1), reduction=reduction)

    def called(self, block: Any, x: Any) -> Any:
        if not self.made.get("checkpoint"):
            return block(x)
        from torch.utils.checkpoint import checkpoint

        return checkpoint(block, x, use_reentrant=False, preserve_rng_state=self.made.get("preserve", True))


def batches(count: int, order: list[int] | None) -> Iterator[Any]:
    draw = torch.Generator().manual_seed(1)
    all_of_them = [torch.randint(0, WORDS, (4, LENGTH + 1), generator=draw) for _ in range(count)]
    return iter([all_of_them[i] for i in order or range(count)])


def adamw(model: Any, made: dict[str, Any]) -> Any:
    options = {name: made[name] for name in ("betas", "fused", "foreach") if name in made}
    return torch.optim.AdamW(
        model.parameters(), lr=made.get("lr", 1e-2), weight_decay=made.get("decay", 0.1), **options
    )


def train(
    keep: Keep,
    *,
    steps: int = 3,
    wrapped: Callable[[Any], Any] = lambda model: model,
    options: dict[str, Any] | None = None,
    **made: Any,
) -> Any:
    """Record a run, in which something may be made otherwise, and give the model."""
    torch.manual_seed(made.get("seed", 0))
    model = wrapped(GPT(made))
    optimizer = adamw(model, made)
    warm = made.get("warm", 0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9 ** (step + warm // 1 * (step > 0)))
    micro = made.get("micro", 1)
    with record_torch(model, optimizer, keep, **(options or {})) as run:
        for ids in batches(steps, made.get("order")):
            if made.get("zeroed", True):
                optimizer.zero_grad()
            for part in ids.chunk(micro):
                loss = model(part) / micro
                run.loss(loss, batch=part).backward()
            nn.utils.clip_grad_norm_(model.parameters(), cast(float, made.get("clip", 0.1)))
            optimizer.step()
            scheduler.step()
    return model
