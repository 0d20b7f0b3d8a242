"""How long the sequences are that attention works on: one length, packed documents, or a second stack's tokens."""

from collections.abc import Iterable
from dataclasses import dataclass

from flopwatch.blocks import Mask


@dataclass(frozen=True, kw_only=True, slots=True)
class Documents:
    """Documents packed into sequences: attention stays inside each.

    Only the two sums are needed: tokens = sum(l), squared_tokens = sum(l^2). With windowed layers the sums
    alone give an upper bound (all documents as long as the token-weighted mean); ``lengths`` makes it exact.
    """

    tokens: float
    squared_tokens: float
    lengths: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.tokens <= self.squared_tokens:
            raise ValueError(
                f"documents have tokens {self.tokens!r} and squared_tokens {self.squared_tokens!r}; "
                "allowed: above 0, and squared_tokens at least tokens"
            )

    @classmethod
    def of(cls, lengths: Iterable[int]) -> "Documents":
        """Documents of these lengths."""
        known = tuple(lengths)
        return cls(tokens=sum(known), squared_tokens=sum(n * n for n in known), lengths=known)

    @classmethod
    def unpacked(cls, seq_len: float) -> "Documents":
        """One document as long as the sequence."""
        return cls(tokens=seq_len, squared_tokens=seq_len * seq_len)

    @property
    def mean_length(self) -> float:
        """The length of the document that a token is in, averaged over tokens."""
        return self.squared_tokens / self.tokens

    def mean_keys(self, mask: Mask) -> float:
        """Keys that a query meets under ``mask``, averaged over tokens."""
        if self.lengths:
            return sum(mask.pairs(length) for length in self.lengths) / self.tokens
        return mask.pairs(self.mean_length) / self.mean_length


@dataclass(frozen=True, kw_only=True, slots=True)
class StackTokens:
    """Tokens of a second stack: how many per trained token, in sequences of which length."""

    per_token: float
    length: float

    def __post_init__(self) -> None:
        if self.per_token < 0 or self.length <= 0:
            raise ValueError(
                f"stack tokens are {self.per_token!r} per token, length {self.length!r}; allowed: 0 or more, above 0"
            )
