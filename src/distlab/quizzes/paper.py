"""A quiz on paper and for programs: Markdown, text and JSON, with the answers or without."""

import json
from collections.abc import Sequence

from distlab.quizzes.item import Item, Kind, Option

LETTERS = "abcdefgh"
TASKS = {Kind.ONE: "Choose one.", Kind.SEVERAL: "Choose all that are right."}


def task(item: Item) -> str:
    """What to do, in a few words."""
    return TASKS.get(item.kind) or (f"Enter a number, in {item.unit}." if item.unit else "Enter a number.")


def verdict(option: Option) -> str:
    """What there is to say about an option: right, or the mistake by name, and the explanation."""
    return f"Right. {option.explanation}" if option.is_right else f"Mistake: {option.mistake}. {option.explanation}"


def markdown(items: Sequence[Item], title: str, with_answers: bool) -> str:
    """The questions as Markdown, and the answers after all questions."""
    lines = [f"# {title}", ""]
    for place, item in enumerate(items, 1):
        lines += [f"## Question {place} (chapter {item.chapter})", "", item.text, ""]
        if item.block:
            lines += ["```", item.block, "```", ""]
        lines += [task(item), ""]
        if item.kind is Kind.NUMBER:
            lines += [f"Answer: ______ {item.unit}".rstrip(), ""]
        else:
            lines += [f"- ({letter}) {option.text}" for letter, option in lettered(item)] + [""]
    if with_answers:
        lines += ["# Answers", ""]
        for place, item in enumerate(items, 1):
            lines += [f"{place}. **{answer(item)}**", ""]
            lines += [f"    - {label(item, letter, option)}: {verdict(option)}" for letter, option in lettered(item)]
            lines.append("")
    return "\n".join(lines)


def text(items: Sequence[Item]) -> str:
    """The questions as plain text, without answers."""
    lines = []
    for place, item in enumerate(items, 1):
        lines += [f"{place}. {item.text}"]
        lines += [f"   | {line}" for line in item.block.splitlines()]
        lines += [f"   {task(item)}"]
        if item.kind is not Kind.NUMBER:
            lines += [f"   ({letter}) {option.text}" for letter, option in lettered(item)]
        lines.append("")
    return "\n".join(lines)


def as_json(items: Sequence[Item], seed: int, with_answers: bool) -> str:
    """The questions for programs; the key "answers" of each only with answers."""
    entries: list[dict[str, object]] = []
    for item in items:
        entry = {name: getattr(item, name) for name in ("chapter", "name", "kind", "text", "block")}
        if item.kind is Kind.NUMBER:
            entry["unit"] = item.unit
        else:
            entry["options"] = [option.text for option in item.options]
        if with_answers:
            entry["tolerance"] = item.tolerance
            entry["answers"] = [
                {"text": each.text, "value": each.value, "right": each.is_right}
                | {"mistake": each.mistake, "explanation": each.explanation}
                for each in item.options
            ]
        entries.append(entry)
    return json.dumps({"seed": seed, "questions": entries}, indent=2, ensure_ascii=False)


def answer(item: Item) -> str:
    """The right answer in short: letters, or the number."""
    if item.kind is Kind.NUMBER:
        return item.right_options[0].text
    return ", ".join(f"({letter})" for letter, option in lettered(item) if option.is_right)


def lettered(item: Item) -> list[tuple[str, Option]]:
    """Each option with the letter that stands before it."""
    return list(zip(LETTERS, item.options, strict=False))


def label(item: Item, letter: str, option: Option) -> str:
    """How the answers name an option."""
    return option.text if item.kind is Kind.NUMBER else f"({letter})"
