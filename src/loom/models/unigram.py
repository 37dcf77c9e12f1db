"""A SentencePiece unigram tokeniser from its pieces; see Kudo 2018."""

import unicodedata

from tokenizers import Tokenizer
from tokenizers.models import Unigram
from tokenizers.pre_tokenizers import Metaspace
from tokenizers.processors import TemplateProcessing

from loom.models.packed import Pieces


class UnigramTokenizer:
    """Text to tokens. Safe for threads."""

    def __init__(self, pieces: Pieces, tokens_max: int) -> None:
        self._foldings = pieces.foldings
        self._tokenizer = Tokenizer(Unigram(pieces.scored, pieces.unknown, byte_fallback=False))
        self._tokenizer.pre_tokenizer = Metaspace(prepend_scheme="always")
        ends = [(pieces.scored[token][0], token) for token in (pieces.first, pieces.last)]
        self._tokenizer.post_processor = TemplateProcessing(
            single=f"{ends[0][0]} $A {ends[1][0]}", pair=None, special_tokens=ends
        )
        self._tokenizer.enable_truncation(tokens_max)  # pyright: ignore[reportUnknownMemberType]

    def __call__(self, text: str) -> list[int]:
        """The tokens of `text`, those of its ends among them; what is over `tokens_max` is cut."""
        return self._tokenizer.encode(self.folded(text)).ids

    def folded(self, text: str) -> str:
        """`text` as the pieces are written: composed, its characters folded, single spaces between words."""
        return " ".join(unicodedata.normalize("NFC", text).translate(self._foldings).split())
