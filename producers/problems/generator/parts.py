"""Parts, the pieces that problems are composed of, and drafts, their compositions."""

from typing import NamedTuple

from domains import Domain


class Part(NamedTuple):
    """One choice of a slot: its words in the question and its code.

    {k} stands for a constant in both.
    """

    name: str
    say: str = ""  # wordings, separated by |
    code: str = ""
    ks: tuple = ()  # values of {k}


class Use(NamedTuple):
    """A part with its constant fixed."""

    name: str = ""
    words: tuple = ()
    code: str = ""


NONE = Use()  # the empty choice of an optional slot


def span(low, high):
    return tuple(range(low, high + 1))


def pick(r, parts):
    """One of the parts with one of its constants."""
    part = r.choice(parts)
    k = str(r.choice(part.ks)) if part.ks else "0"
    words = tuple(part.say.replace("{k}", k).split("|")) if part.say else ()
    return Use(part.name, words, part.code.replace("{k}", k))


def maybe(r, probability, parts):
    """A pick with this probability, otherwise NONE."""
    return NONE if r.fraction() >= probability else pick(r, parts)


def phrase(*pieces):
    """A question whose wording is open: for each piece its alternatives.

    A piece is a string, a tuple of alternatives, a Use or another phrase.
    """
    found = []
    for piece in pieces:
        if isinstance(piece, str):
            found.append([piece])
        elif isinstance(piece, Use):
            if piece.name:
                found.append(list(piece.words))
        elif isinstance(piece, tuple):
            found.append(list(piece))
        else:
            found += piece
    return found


def wording(phrase, r):
    """A sentence of one alternative of each piece."""
    text = ""
    for alternatives in phrase:
        piece = r.choice(alternatives) if len(alternatives) > 1 else alternatives[0]
        if piece:
            text += (" " if text and piece[0] != "," else "") + piece
    return text + "."


class Draft(NamedTuple):
    """A problem as drawn; nothing is known of its behaviour."""

    family: str
    uses: list
    domain: Domain
    phrase: list
    body: str  # statements at one level of indentation

    def source(self):
        return "def solve(" + ", ".join(self.domain.params) + "):\n    " + self.body.replace("\n", "\n    ")

    def parts(self):
        """The parts, without their constants, qualified by the family."""
        return [self.family + "." + use.name for use in self.uses if use.name]

    def skeleton(self):
        """The composition, without its constants."""
        return self.family + "(" + ",".join(use.name for use in self.uses) + ")"


def conjunction(*uses):
    """The conditions of the uses, joined by and."""
    return " and ".join(use.code for use in uses if use.code)


def loop(element, item, iterable, condition):
    text = element + " for " + item + " in " + iterable
    return text + " if " + condition if condition else text


def expand(code, generator, followed="", items=""):
    """Fills a reducer's G (an iterable), P (one that other arguments follow) and L (a list)."""
    followed = followed or "(" + generator + ")"
    items = items or "[" + generator + "]"
    return code.replace("G", generator).replace("P", followed).replace("L", items)
