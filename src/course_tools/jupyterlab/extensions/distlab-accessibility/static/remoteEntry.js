// An extension of JupyterLab for those who use a screen reader or the keyboard. It needs no build: this file is the
// container that JupyterLab asks for.
//
// Figures: JupyterLab shows an SVG output as an image without a text, so the figure's own description is lost. Here it
// becomes the image's text.
//
// Quizzes: a quiz asks JupyterLab to leave its keys alone, but JupyterLab looks for that at the element with the focus
// before it looks around it, and an arrow key would leave the quiz for the next cell. Here each field asks for itself.
//
// Tabs: every lab is a lab.ipynb, and a tab's label is the name of its file. Here the tab shows "Lab 06" instead. (To
// change the label would rename the file.)
(() => {
  const SVG = "image/svg+xml";
  const OWN_KEYS = "data-lm-suppress-shortcuts";
  let shared;

  function descriptionOf(source) {
    const tag = source.match(/<svg[^>]*>/)?.[0] ?? "<svg>";
    const svg = new DOMParser().parseFromString(`${tag}</svg>`, "text/html").querySelector("svg");
    return svg.getAttribute("aria-label");
  }

  function describing(factory) {
    function createRenderer(options) {
      const output = factory.createRenderer(options);
      const render = output.render.bind(output);
      output.render = async (model) => {
        await render(model);
        const image = output.node.querySelector("img");
        const description = descriptionOf(String(model.data[SVG]));
        if (image && description) image.alt = description;
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
        registry.addFactory(describing(registry.getFactory(SVG)), registry.getRank(SVG));
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
