// Makes what a slide shows as large as it may be, then starts the deck.
(() => {
  const SMALLEST = 0.4, LARGEST = 1.3, STEP = 0.02;

  const isTooLarge = (body) => {
    const right = body.getBoundingClientRect().right + 1;
    return body.scrollHeight > body.clientHeight + 1 || body.scrollWidth > body.clientWidth + 1 ||
      [...body.querySelectorAll("pre, table, math")].some((part) =>
        part.getBoundingClientRect().right > right || part.scrollWidth > part.clientWidth + 1);
  };

  const fit = (frame) => {
    const body = frame.querySelector(".body");
    // Beside large words a picture would be small.
    for (let scale = body.querySelector("figure") ? 1 : LARGEST; scale >= SMALLEST; scale -= STEP) {
      frame.style.setProperty("--scale", scale.toFixed(2));
      if (!isTooLarge(body)) return;
    }
  };

  document.body.classList.add("measured");
  document.querySelectorAll(".frame").forEach(fit);
  document.body.classList.remove("measured");
  Reveal.initialize({
    width: 1280, height: 720, margin: 0, center: false, hash: true, transition: "none", slideNumber: "c/t",
    controlsLayout: "edges", controlsTutorial: false, pdfSeparateFragments: false,
    keyboardCondition: (event) => event.key !== " " || !document.activeElement.closest("button, select"), // whose key it is
    plugins: [RevealNotes],
  });
})();
