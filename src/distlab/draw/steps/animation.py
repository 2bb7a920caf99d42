"""The steps of a run as an animated SVG: messages travel from rank to rank, and the chunks fill up."""

from hashlib import sha256
from html import escape

from IPython.display import display

from distlab.draw.steps.chunk_boxes import Boxes
from distlab.draw.steps.history import History, StepMessage
from distlab.draw.steps.legend import Legend
from distlab.draw.steps.stamps import Drawing, Stamp, rectangle, words
from distlab.draw.steps.strip import draw_strip
from distlab.draw.style import INK, show
from distlab.runtime.errors import WrongArgument

MOST_RANKS = 8
"""An animation grows with the fourth power of the ranks: one of a ring of sixteen has 30 MB."""

_SCALE = 1.5
_NAMES = 0.85  # the room for the ranks' names, in inches
_HEAD = 0.62
_ROW_GAP = 0.2
# When, as a share of a step, its messages set out and arrive.
_LEAVE, _ARRIVE = 0.15, 0.7


def animated_svg(trace: History, description: str, seconds_per_step: float = 2.0) -> str:
    """The steps as an animated SVG: the messages travel from rank to rank, and the chunks fill up.

    It moves by CSS alone, pauses while the pointer is on it, and stands still, at the end of the run, for readers who
    have asked their system for reduced motion. `description` becomes its title. Raises WrongArgument for more than
    MOST_RANKS ranks.
    """
    if trace.size > MOST_RANKS:
        raise WrongArgument(
            f"{trace.size} ranks are too many for an animation, at most {MOST_RANKS}; `strip([0, 1])` draws the steps "
            "that you choose."
        )
    stage = _Stage(trace)
    # Names in a page are global: those of this animation begin with a number made from its content.
    content = repr((trace.task, trace.holdings, [message[:3] for message in trace.messages], str(trace.error)))
    name = "a" + sha256(f"{content}{seconds_per_step}{description}".encode()).hexdigest()[:8]
    drawing = Drawing(name + "-", stage.height)

    parts = [f"<g>{drawing.uses(stage.still)}</g>"]
    for step, (state, title) in enumerate(zip(stage.states, stage.titles, strict=True)):
        # Where nothing moves, a reader sees the end.
        hidden = "" if step == trace.last else ' visibility="hidden"'
        boxes = "".join(drawing.use_together(stamps, x, y) for stamps, x, y in state)
        parts.append(f'<g class="state {name}-state-{step}"{hidden}>{boxes}</g>')
        parts.append(f'<g class="title {name}-title-{step}"{hidden}>{drawing.uses(title)}</g>')
    for message, stamps, (right, up) in stage.moving:
        way = f"--x:{96 * right:.1f}px;--y:{-96 * up:.1f}px"
        parts.append(
            f'<g class="message {name}-message-{message.step}" visibility="hidden" style="{way}">'
            f"{drawing.uses(stamps)}</g>"
        )
    width, height = round(96 * stage.width), round(96 * stage.height)
    label = escape(description)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" id="{name}" role="img" aria-label="{label}" '
        f'viewBox="0 0 {width} {height}" width="{width}" style="max-width:100%;height:auto;background:white">\n'
        f"<title>{label}</title>\n<style>\n{_rules(name, trace.last, seconds_per_step)}</style>\n"
        f"{drawing.definitions()}\n" + "\n".join(parts) + "\n</svg>"
    )


def show_animated(trace: History, description: str, seconds_per_step: float = 2.0) -> None:
    """Display the animation in a notebook with a box to pause it and `description`; below it, the strip.

    Works in JupyterLab and in exported pages, without JavaScript. Where HTML is not displayed the description replaces
    it.
    """
    # A label around the box and the picture, so that a click on either pauses it.
    page = (
        '<figure class="distlab-animation" style="margin:0"><label>'
        '<input type="checkbox" class="distlab-pause"> pause<br>\n'
        f"{animated_svg(trace, description, seconds_per_step)}\n"
        f"</label><figcaption>{escape(description)}</figcaption></figure>"
    )
    display({"text/html": page, "text/plain": description}, raw=True)
    show(draw_strip(trace), description)


class _Stage:
    """Where everything is, in inches: what stays, each state, each title, and what moves where."""

    def __init__(self, trace: History) -> None:
        self._boxes = Boxes(trace, _SCALE)
        self._row = self._boxes.box[1] + _ROW_GAP
        waiting = trace.waiting()
        least = _NAMES + self._boxes.width + (1.5 if waiting else 0.15)
        self.width = max(least, 5.0)
        legend = Legend(Boxes(trace), list(range(trace.last + 1)), self.width - 0.3, with_marks=False)
        self.height = _HEAD + trace.size * self._row + legend.height
        ranks = range(trace.size)

        self.still = self._boxes.chunk_numbers(_NAMES, self.height - 0.47) + legend.stamps(0.12, legend.height)
        for rank in ranks:
            self.still.append(Stamp(words(f"rank {rank}", 11, INK, align="left"), 0.12, self._middle(rank)))
        # A state is a list of boxes: what is stamped for each, and where its lower left corner is.
        lefts = [_NAMES + number * self._boxes.pitch for number in range(len(trace.boxes))]
        self.states = [
            [
                (self._boxes.box_after(step, rank, number, 0, 0), left, self._bottom(rank))
                for rank in ranks
                for number, left in enumerate(lefts)
            ]
            for step in range(trace.last + 1)
        ]
        for rank, text in waiting.items():
            waits = Stamp(words(text, 9, INK, align="left"), 0, 0)
            self.states[-1].append(([waits], _NAMES + self._boxes.width + 0.12, self._middle(rank)))
        # A title for each step, visible while it happens, and one for when all is over.
        names = [f"step {step} of {trace.last}" for step in range(1, trace.last + 1)]
        names.append(f"after {trace.last} steps" if trace.last else "start")
        self.titles = [
            [Stamp(words(text, 11, INK, bold=True, align="left"), _NAMES, self.height - 0.18)] for text in names
        ]
        self.moving = [(message, *self._moving(message)) for message in trace.messages]

    def _bottom(self, rank: int) -> float:
        return self.height - _HEAD - rank * self._row - self._boxes.box[1]

    def _middle(self, rank: int) -> float:
        return self._bottom(rank) + self._boxes.box[1] / 2

    def _moving(self, message: StepMessage) -> tuple[list[Stamp], tuple[float, float]]:
        """What travels, where it starts, and how far it goes to the right and up."""
        bottom = self._bottom(message.source)
        numbers = self._boxes.trace.boxes_sent(message)
        frame = rectangle("message", *self._boxes.box, "none", INK, 2.2, layer=4)
        stamps: list[Stamp] = []
        for number in numbers:
            x = _NAMES + number * self._boxes.pitch
            sent = self._boxes.trace.sent_from(message, number)
            stamps += self._boxes.box_with(sent, message.source, number, x, bottom)
            stamps.append(Stamp(frame, x, bottom))
        if not numbers:
            stamps.append(Stamp(words("•", 16), _NAMES - 0.12, self._middle(message.source)))
        up = self._bottom(message.to) - bottom
        if not message.received:
            x = _NAMES + numbers[0] * self._boxes.pitch if numbers else _NAMES - 0.12
            stamps.append(Stamp(words("×", 20, INK, bold=True), x, self._middle(message.source)))
            up /= 2
        # A little to the right on its way, so that it does not cover exactly the boxes that it passes.
        return stamps, (0.07, up)


def _rules(name: str, last: int, seconds_per_step: float) -> str:
    """The style sheet: when each state and title is shown, when the messages of each step travel, and how to pause."""
    total = (last + 1) * seconds_per_step
    rules = [
        f"#{name} g[class] {{animation-duration:{total:g}s;animation-iteration-count:infinite}}",
        f"#{name} .state,#{name} .title {{animation-timing-function:step-end}}",
    ]

    def percent(steps: float) -> str:
        return f"{100 * steps / (last + 1):.2f}%"

    for step in range(last + 1) if last else ():
        begin = step - 1 + _ARRIVE if step else 0
        end = step + _ARRIVE if step < last else last + 1
        rules += _visible(f"{name}-state-{step}", percent(begin), percent(end))
        rules += _visible(f"{name}-title-{step}", percent(step), percent(step + 1))
        if step:
            leave, arrive = percent(step - 1 + _LEAVE), percent(step - 1 + _ARRIVE)
            rules.append(f"#{name} .{name}-message-{step} {{animation-name:{name}-message-{step}}}")
            rules.append(
                f"@keyframes {name}-message-{step} {{0% {{visibility:hidden;animation-timing-function:step-end}}"
                f"{leave} {{visibility:visible;transform:none;animation-timing-function:ease-in-out}}"
                f"{arrive} {{visibility:hidden;transform:translate(var(--x),var(--y));"
                "animation-timing-function:step-end}100% {visibility:hidden}}"
            )
    rules.append(f"#{name}:hover g[class],input:checked~#{name} g[class] {{animation-play-state:paused}}")
    rules.append(f"@media (prefers-reduced-motion:reduce) {{#{name} g[class] {{animation:none}}}}")
    return "\n".join(rules) + "\n"


def _visible(name: str, begin: str, end: str) -> list[str]:
    """Rules by which what has the class `name` is visible from `begin` to `end`, both a percentage of the whole."""
    frames = {"0.00%": "hidden", begin: "visible"} | ({} if end == "100.00%" else {end: "hidden"})
    steps = "".join(f"{when} {{visibility:{value}}}" for when, value in frames.items())
    last = "visible" if end == "100.00%" else "hidden"
    return [f".{name} {{animation-name:{name}}}", f"@keyframes {name} {{{steps}100% {{visibility:{last}}}}}"]
