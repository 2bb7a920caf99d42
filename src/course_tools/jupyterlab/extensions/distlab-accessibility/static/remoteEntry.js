// An extension of JupyterLab for those who use a screen reader or the keyboard. It needs no build: this file is the
// container that JupyterLab asks for.
//
// Figures: JupyterLab shows an SVG output as an image without a text, so the figure's own description is lost. Here it
// becomes the image's text. In the dark theme a drawing turns dark, and what has photographs stays.
//
// Quizzes: a quiz asks JupyterLab to leave its keys alone, but JupyterLab looks for that at the element with the focus
// before it looks around it, and an arrow key would leave the quiz for the next cell. Here each field asks for itself.
//
// Cards: paragraphs that begin with a word such as "Predict." look as on the site and on the slides.
//
// Tabs: every lab is a lab.ipynb, and a tab's label is the name of its file. Here the tab shows "Lab 06" instead. (To
// change the label would rename the file.)
(() => {
  const SVG = "image/svg+xml", MARKDOWN = "text/markdown";
  // What else belongs to a card: the other paragraphs of a header, the choices and the answer of a question.
  const CARDS = { "Goal.": "p:has(> strong:first-child), ul", "Predict.": "", "Question.": "ol, details", "Pitfall.": "" };
  const OWN_KEYS = "data-lm-suppress-shortcuts";
  let shared;

  function descriptionOf(source) {
    const tag = source.match(/<svg[^>]*>/)?.[0] ?? "<svg>";
    const svg = new DOMParser().parseFromString(`${tag}</svg>`, "text/html").querySelector("svg");
    return svg.getAttribute("aria-label");
  }

  function describe(node, model) {
    const image = node.querySelector("img");
    const description = descriptionOf(String(model.data[SVG]));
    if (image && description) image.alt = description;
    image?.classList.toggle("distlab-drawing", !String(model.data[SVG]).includes("<image"));
  }

  function makeCards(node) {
    for (const bold of node.querySelectorAll("p > strong:first-child")) {
      const [paragraph, more] = [bold.parentElement, CARDS[bold.textContent]];
      if (more === undefined || bold.previousSibling) continue;
      const card = Object.assign(document.createElement("div"), { className: "distlab-card" });
      card.classList.toggle("tells", bold.textContent === "Goal.");
      paragraph.replaceWith(card);
      card.append(paragraph);
      while (more && card.nextElementSibling?.matches(more)) card.append(card.nextElementSibling);
    }
    const recap = [...node.querySelectorAll("h2 + ul")].find((list) => list.previousElementSibling.textContent.startsWith("Recap"));
    recap?.classList.add("distlab-card", "tells");
  }

  // A factory whose renderers also change what they have rendered.
  function changing(factory, change) {
    function createRenderer(options) {
      const output = factory.createRenderer(options);
      const render = output.render.bind(output);
      output.render = async (model) => {
        await render(model);
        change(output.node, model);
      };
      return output;
    }
    return { ...factory, createRenderer };
  }

  function keepKeys(event) {
    if (event.target.closest(`[${OWN_KEYS}]`)) event.target.setAttribute(OWN_KEYS, "true");
  }

  const style = document.createElement("style");
  style.textContent = `
    .distlab-card { --strong: #b35900; padding: .75rem 1rem; border-left: 5px solid var(--strong); border-radius: 6px; margin-block: 1em; }
    .distlab-card { background: color-mix(in srgb, var(--strong) 8%, transparent); }
    .distlab-card.tells { --strong: #0072b2; }
    ul.distlab-card { padding-left: 2.5rem; }
    .distlab-card > :is(p, ul, ol, details) { margin-block: 0 .4em; }
    .distlab-card:not(.tells) > p:first-child > strong:first-child {
      background: var(--strong); color: white; padding: .1em .5em; border-radius: 4px;
    }
    [data-jp-theme-light="false"] .distlab-card { --strong: #e69f00; }
    [data-jp-theme-light="false"] .distlab-card.tells { --strong: #56b4e9; }
    [data-jp-theme-light="false"] .distlab-card:not(.tells) > p:first-child > strong:first-child { color: #1b1b1b; }
    [data-jp-theme-light="false"] :is(.distlab-drawing, .jp-RenderedMarkdown img[src*=".svg"], .distlab-player svg, .distlab-calculator svg) {
      background: white; filter: invert(.93) hue-rotate(180deg);
    }
    .lm-TabBar-tab[data-lab] .lm-TabBar-tabLabel { position: relative; color: transparent; }
    .lm-TabBar-tab[data-lab] .lm-TabBar-tabLabel::after { position: absolute; left: 0; color: var(--jp-ui-font-color1); }`;

  function nameTab(tracker, { context, title }) {
    const [, kind, number] = context.path.match(/^(lab|solution)s\/(\d\d)_/) ?? [];
    if (!kind) return;
    const lab = `${kind === "lab" ? "Lab" : "Solution"} ${number}`;
    style.textContent += `.lm-TabBar-tab[data-lab="${lab}"] .lm-TabBar-tabLabel::after { content: "${lab}"; }`;
    title.dataset = { ...title.dataset, lab };
  }

  async function extension() {
    const load = async (name) => (await Object.values(shared[`@jupyterlab/${name}`])[0].get())();
    const { IRenderMimeRegistry } = await load("rendermime");
    const { INotebookTracker } = await load("notebook");
    const plugin = {
      id: "distlab-accessibility:plugin",
      autoStart: true,
      requires: [IRenderMimeRegistry, INotebookTracker],
      activate: (app, registry, tracker) => {
        document.head.append(style);
        tracker.widgetAdded.connect(nameTab);
        for (const [type, change] of [[SVG, describe], [MARKDOWN, makeCards]]) {
          registry.addFactory(changing(registry.getFactory(type), change), registry.getRank(type));
        }
        document.addEventListener("focusin", keepKeys);
      },
    };
    return () => ({ __esModule: true, default: plugin });
  }

  window._JUPYTERLAB = window._JUPYTERLAB ?? {};
  window._JUPYTERLAB["distlab-accessibility"] = {
    init: (scope) => {
      shared = scope;
    },
    get: extension,
  };
})();
