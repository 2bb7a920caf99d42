// JupyterLab shows an SVG output as an image without a text, so the figure's own description reaches no screen reader.
// This extension makes it the image's text. It needs no build: the file is the container that JupyterLab asks for.
(() => {
  const SVG = "image/svg+xml";
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

  async function extension() {
    const [rendermime] = Object.values(shared["@jupyterlab/rendermime"]);
    const { IRenderMimeRegistry } = (await rendermime.get())();
    const plugin = {
      id: "distlab-descriptions:plugin",
      autoStart: true,
      requires: [IRenderMimeRegistry],
      activate: (app, registry) => registry.addFactory(describing(registry.getFactory(SVG)), registry.getRank(SVG)),
    };
    return () => ({ __esModule: true, default: plugin });
  }

  window._JUPYTERLAB = window._JUPYTERLAB ?? {};
  window._JUPYTERLAB["distlab-descriptions"] = {
    init: (scope) => {
      shared = scope;
    },
    get: extension,
  };
})();
