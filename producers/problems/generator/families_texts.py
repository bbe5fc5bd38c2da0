"""Problems over the characters and the words of a string."""

from domains import TEXT, WORDS
from families_lists import ASKS, QUANTIFIERS
from families_numbers import RETURNS
from parts import NONE, Draft, Part, conjunction, expand, loop, maybe, phrase, pick, span

# Kinds are plural nouns for characters.
KINDS = (
    Part("vowels", "vowels", "c in 'aeiouAEIOU'"),
    Part("uppercase", "uppercase letters", "c.isupper()"),
    Part("lowercase", "lowercase letters", "c.islower()"),
    Part("digits", "digits", "c.isdigit()"),
    Part("letters", "letters", "c.isalpha()"),
    Part("non_vowels", "characters other than vowels|non-vowels", "c not in 'aeiouAEIOU'"),
    Part("non_digits", "characters other than digits|non-digits", "not c.isdigit()"),
    Part("non_letters", "characters other than letters|non-letters", "not c.isalpha()"),
    Part("non_spaces", "characters other than spaces|non-spaces", "c != ' '"),
)
ALL_CHARACTERS = (Part("characters", "characters"),)

TEXT_SOURCES = (
    Part("s", "of s", "s"),
    Part("first", "among the first {k} of s", "s[:{k}]", span(2, 4)),
    Part("last", "among the last {k} of s", "s[-{k}:]", span(2, 4)),
    Part("even_index", "at even indexes of s", "s[::2]"),
    Part("odd_index", "at odd indexes of s", "s[1::2]"),
)
CHARACTER_MAPS = (
    Part("upper", ", in uppercase|, uppercased", "c.upper()"),
    Part("lower", ", in lowercase|, lowercased", "c.lower()"),
    Part("swap", ", with case swapped", "c.swapcase()"),
    Part("repeat", ", each {k} times", "c * {k}", span(2, 4)),
    Part("dash", ", each followed by '-'", "c + '-'"),
    Part("star", ", each after a '*'", "'*' + c"),
)
TEXT_REDUCERS = (
    Part("joined", "", "''.join(G)"),
    Part("reversed", ", reversed|, in reverse order", "''.join(G)[::-1]"),
    Part("sorted", ", sorted", "''.join(sorted(G))"),
    Part("unique", ", sorted without duplicates", "''.join(sorted(set(G)))"),
    Part("listed", ", as a list", "L"),
    Part("cut", ", cut to {k} characters", "''.join(G)[:{k}]", span(2, 4)),
)
TEXT_COUNTS = (
    Part("count", "the number of|the count of", "len(L)"),
    Part("distinct", "the number of different", "len(set(G))"),
)

def draw_spelled(r):
    """The characters of a kind: "the vowels of s, in uppercase, reversed"."""
    source, kind = pick(r, TEXT_SOURCES[:1]), pick(r, KINDS)
    if r.below(3) == 0:
        source = pick(r, TEXT_SOURCES[1:])
    if r.below(6) == 0:
        kind = pick(r, ALL_CHARACTERS)
    mapping = NONE
    if r.below(5) == 0:
        reducer = pick(r, TEXT_COUNTS)
        said = phrase(RETURNS, reducer, kind, source)
    else:
        mapping, reducer = maybe(r, 0.6, CHARACTER_MAPS), pick(r, TEXT_REDUCERS)
        if not kind.code and not mapping.name and reducer.name == "joined":
            mapping = pick(r, CHARACTER_MAPS)  # the characters of s are s
        said = phrase(RETURNS, "the", kind, source, mapping)
        if reducer.words:
            said += phrase(reducer)
    generator = loop(mapping.code or "c", "c", source.code, kind.code)
    return Draft(
        "spelled", [source, kind, mapping, reducer], TEXT, said, "return " + expand(reducer.code, generator))


# Singular kinds complete "every ..." and "is ...".
SINGULAR_KINDS = (
    Part("vowels", "vowel", "c in 'aeiouAEIOU'"),
    Part("uppercase", "uppercase letter", "c.isupper()"),
    Part("lowercase", "lowercase letter", "c.islower()"),
    Part("digits", "digit", "c.isdigit()"),
    Part("letters", "letter", "c.isalpha()"),
    Part("non_vowels", "non-vowel", "c not in 'aeiouAEIOU'"),
    Part("non_digits", "non-digit", "not c.isdigit()"),
    Part("non_letters", "non-letter", "not c.isalpha()"),
    Part("spaces", "space", "c == ' '"),
)
CHARACTER_CHANGES = (
    Part("star", "replaced by '*'", "'*'"),
    Part("dash", "replaced by '-'", "'-'"),
    Part("upper", "uppercased", "c.upper()"),
    Part("lower", "lowercased", "c.lower()"),
    Part("swap", "swapped in case", "c.swapcase()"),
    Part("repeat", "written {k} times", "c * {k}", span(2, 4)),
    Part("marked", "followed by '!'", "c + '!'"),
)
TEXT_ENDINGS = (
    Part("reversed", ", and reversed", "[::-1]"),
    Part("cut", ", cut to {k} characters", "[:{k}]", span(2, 4)),
)

def draw_rewritten(r):
    """Some characters changed, the others kept: "s with every digit replaced by '*'"."""
    kind, change, ending = pick(r, SINGULAR_KINDS), pick(r, CHARACTER_CHANGES), maybe(r, 0.4, TEXT_ENDINGS)
    return Draft(
        "rewritten", [kind, change, ending], TEXT,
        phrase("Return s with every", kind, change, ending),
        "return ''.join(" + change.code + " if " + kind.code + " else c for c in s)" + ending.code)


def draw_screened(r):
    """Whether every, some or no character is of a kind: "True if no character of s is a digit"."""
    source, quantifier, kind = pick(r, TEXT_SOURCES), pick(r, QUANTIFIERS), pick(r, SINGULAR_KINDS)
    article = "an" if kind.words[0][0] in "aeiou" else "a"
    return Draft(
        "screened", [source, quantifier, kind], TEXT,
        phrase(ASKS, quantifier, "character", source, "is " + article, kind),
        "return " + quantifier.code + loop(kind.code, "c", source.code, "") + ")")


WORD_CLAUSES = (
    Part("longer", "longer than {k}", "len(w) > {k}", span(1, 4)),
    Part("shorter", "shorter than {k}", "len(w) < {k}", span(2, 5)),
    Part("length", "of length {k}", "len(w) == {k}", span(1, 4)),
    Part("vowel_start", "starting with a vowel", "w[0] in 'aeiouAEIOU'"),
    Part("vowel_end", "ending with a vowel", "w[-1] in 'aeiouAEIOU'"),
    Part("capital", "starting in uppercase", "w[0].isupper()"),
    Part("contains_a", "containing 'a'", "'a' in w"),
    Part("contains_e", "containing 'e'", "'e' in w"),
    Part("without_e", "without 'e'", "'e' not in w"),
    Part("starts_t", "starting with 't'", "w.startswith('t')"),
    Part("ends_n", "ending with 'n'", "w.endswith('n')"),
)
WORD_MAPS = (
    Part("reversed", "the reversed", "w[::-1]"),
    Part("upper", "the uppercased", "w.upper()"),
    Part("lower", "the lowercased", "w.lower()"),
    Part("initials", "the first letters of the", "w[0]"),
    Part("finals", "the last letters of the", "w[-1]"),
    Part("prefixes", "the first {k} letters of the", "w[:{k}]", span(2, 3)),
)
WORD_REDUCERS = (
    Part("list", "the list of", "L"),
    Part("joined", ", joined by spaces", "' '.join(G)"),
    Part("glued", ", joined without spaces", "''.join(G)"),
    Part("sorted", "the sorted list of|the ascending list of", "sorted(G)"),
    Part("backwards", "the reversed list of", "L[::-1]"),
    Part("count", "the number of|the count of", "len(L)"),
    Part("distinct", "the number of different", "len(set(G))"),
    Part("longest", "the longest of", "max(P, key=len, default='')"),
    Part("shortest", "the shortest of", "min(P, key=len, default='')"),
    Part("letters", "the total length of", "sum(G)"),
)

def draw_worded(r):
    """A fold of the words of s: "the reversed words in s longer than 3"."""
    clause, reducer, mapping = maybe(r, 0.85, WORD_CLAUSES), pick(r, WORD_REDUCERS), NONE
    opening, the, ending, element = reducer, "the", "", "w"
    if reducer.name in ("count", "distinct"):
        the = ""
    elif reducer.name in ("longest", "shortest"):
        ending = (", or '' if there are none", ", or '' if none")
    elif reducer.name == "letters":
        element = "len(w)"
    else:
        if reducer.name in ("joined", "glued"):
            opening, ending = "", reducer
        mapping = maybe(r, 0.7, WORD_MAPS)
        if mapping.name:
            the, element = "", mapping.code
    if not clause.name and element == "w":
        clause = pick(r, WORD_CLAUSES)
    return Draft(
        "worded", [clause, mapping, reducer], WORDS,
        phrase(RETURNS, opening, mapping, the, "words in s", clause, ending),
        "return " + expand(reducer.code, loop(element, "w", "s.split()", clause.code)))
