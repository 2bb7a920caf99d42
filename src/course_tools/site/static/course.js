// Outputs that wait for a guess, quizzes that mark themselves, terms that show their meaning, pictures to enlarge, the
// line around what a search has found, and regions that scroll and can be reached by keyboard.
"use strict";

(() => {
  const element = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };

  // Predictions: the next output, those of the cells right after it, and what the text says of them wait for a guess.

  let stored = { getItem: () => null, setItem: () => {}, removeItem: () => {} };
  try { stored = localStorage; } catch { /* a browser that keeps nothing for files */ }

  const waitingAfter = (card) => {
    const waiting = [];
    let part = card, hasText = false;
    while (part.parentElement.tagName !== "SECTION") part = part.parentElement;
    while ((part = part.nextElementSibling) && !part.matches("section, .predict, .quiz")) {
      const output = part.matches(".cell") && !hasText ? part.querySelector(".cell_output") : waiting.length && part;
      if (output) waiting.push(output);
      hasText ||= output === part;
    }
    return waiting;
  };

  const makePrediction = (card) => {
    const waiting = waitingAfter(card);
    if (!waiting.length) return;
    if (stored.getItem("show-all")) {
      const again = element("button", { type: "button", textContent: "Let me guess again" });
      again.addEventListener("click", () => { stored.removeItem("show-all"); location.reload(); });
      card.append(element("p", { className: "guess" }, again));
      return;
    }
    const guess = element("input", { type: "text", required: true, autocomplete: "off" });
    const show = element("button", { type: "button", textContent: "Show" });
    const all = element("button", { type: "button", textContent: "Show all", title: "On every page, until you ask to guess again" });
    const compare = element("button", { textContent: "Compare" });
    const form = element("form", { className: "guess" }, element("label", {}, "Your guess ", guess), compare, show, all);
    const open = (said) => {
      waiting.forEach((part) => part.classList.remove("is-waiting"));
      const status = element("span", { className: "guess", tabIndex: -1 }, ...said, "The output and its explanation are below.");
      form.replaceWith(status);
      status.focus();
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      open(["Your guess: ", element("b", { textContent: guess.value }), ". "]);
    });
    show.addEventListener("click", () => open([]));
    all.addEventListener("click", () => { stored.setItem("show-all", "yes"); location.reload(); });
    waiting.forEach((part) => part.classList.add("is-waiting"));
    card.append(form);
  };

  // Quizzes

  const makeQuiz = (quiz, number) => {
    const answer = quiz.querySelector(":scope > details.quiz-answer");
    const items = [...quiz.querySelectorAll(":scope > ol > li")];
    const question = quiz.querySelector(".quiz-question");
    const comments = quiz.dataset.comments ? [...answer.querySelectorAll(":scope > :is(ol, ul) > li")] : [];
    question.id = `question-${number}`;
    quiz.setAttribute("role", "group");
    quiz.setAttribute("aria-labelledby", question.id);
    const feedback = element("p", { className: "quiz-feedback" });
    feedback.setAttribute("role", "status");
    const boxes = items.map((item) => {
      const box = element("input", { type: "radio", name: question.id });
      item.replaceChildren(element("label", {}, box, ...item.childNodes));
      box.addEventListener("change", () => { check.disabled = false; });
      return box;
    });
    const check = element("button", { type: "button", textContent: "Check", disabled: true });
    check.addEventListener("click", () => {
      const chosen = boxes.findIndex((box) => box.checked);
      const isRight = chosen + 1 === Number(quiz.dataset.answer);
      items.forEach((item) => item.classList.remove("is-right", "is-wrong"));
      items[chosen].classList.add(isRight ? "is-right" : "is-wrong");
      const verdict = isRight || comments[chosen] ? [] : [element("strong", { textContent: "Not this one. " })];
      const comment = comments[chosen] ? [...comments[chosen].cloneNode(true).childNodes] : [];
      feedback.replaceChildren(...verdict, ...(comment.length || !isRight ? comment : [element("strong", { textContent: "Right." })]));
      if (isRight) answer.open = true;
    });
    answer.before(check);
    answer.before(feedback);
  };

  // The meaning of a term of the glossary, on a card while its link has the pointer or the focus; Escape hides it.
  const makeTerms = (links) => {
    const card = element("div", { id: "term-card", hidden: true });
    card.setAttribute("role", "tooltip");
    const hide = () => { card.hidden = true; };
    links.forEach((link) => {
      const meaning = link.title;
      link.removeAttribute("title"); // which would be a second card
      link.setAttribute("aria-describedby", card.id);
      const show = () => {
        card.replaceChildren(element("b", { textContent: link.textContent }), `: ${meaning}`);
        card.hidden = false;
        const box = link.getClientRects()[0], widest = document.documentElement.clientWidth - card.offsetWidth - 8;
        card.style.left = `${window.scrollX + Math.max(8, Math.min(box.left, widest))}px`;
        card.style.top = `${window.scrollY + box.bottom}px`;
      };
      link.addEventListener("pointerenter", show);
      link.addEventListener("focus", show);
      link.addEventListener("blur", hide);
      link.addEventListener("pointerleave", (event) => event.relatedTarget === card || hide());
    });
    card.addEventListener("pointerleave", hide);
    document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
    if (links.length) document.body.append(card);
  };

  // A picture that is shown smaller than it was drawn leads to itself.
  const makeLarge = (picture) => {
    if (picture.closest("a") || picture.clientWidth >= Number(picture.getAttribute("width"))) return;
    const link = element("a", { href: picture.src, title: "Enlarge the picture" });
    picture.replaceWith(link);
    link.append(picture);
  };

  // Above what the search has found: the term of the glossary; under each page: the line with the most of the words.
  const makeSearch = (results) => {
    const query = new URLSearchParams(window.location.search).get("q")?.trim().toLowerCase();
    if (!query) return;
    const literal = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
    const terms = query.split(/\s+/).map(literal);
    const found = new RegExp(`(${[literal(query), ...terms].join("|")})`, "iu");
    const worth = (line) => terms.filter((term) => new RegExp(term, "iu").test(line)).length + line.toLowerCase().includes(query);
    window.courseWords = (words) => {
      const begins = (line) => [query, query.replace(/s$/, "")].some((term) => line.toLowerCase().startsWith(`${term} (`));
      const [term, meaning] = words["docs/glossary"]?.find(begins)?.split(/ \(\d\d\): /) || [];
      if (term) {
        const anchor = term.toLowerCase().replace(/['’]/g, "").replace(/[^a-z0-9]+/g, "-");
        const link = element("a", { href: `docs/glossary.html#term-${anchor}`, textContent: term });
        results.before(element("p", { className: "meaning" }, link, `: ${meaning}`));
      }
      const addLine = (item) => {
        item.classList.add("has-line");
        const lines = words[item.querySelector("a").getAttribute("href").split(".html")[0]] || [];
        const line = lines.reduce((best, each) => (worth(each) > worth(best) ? each : best), "").replace(/\s+/g, " ");
        if (!line || item.matches(".kind-object")) return;
        const start = Math.max(0, line.lastIndexOf(" ", line.search(found) - 60));
        const end = (line.indexOf(" ", start + 200) + 1 || line.length + 1) - 1;
        const parts = `${start ? "…" : ""}${line.slice(start, end)}${end < line.length ? " …" : ""}`.split(found);
        item.append(element("p", {}, ...parts.map((part, index) => (index % 2 ? element("mark", { textContent: part }) : part))));
      };
      const add = () => results.querySelectorAll("li:not(.has-line)").forEach(addLine);
      new MutationObserver(add).observe(results, { childList: true, subtree: true });
      add();
    };
    document.head.append(element("script", { src: "_static/words.js" }));
  };

  // What scrolls can be scrolled by keyboard, and nothing else is a stop of the Tab key; whenever its width changes.
  const scrolling = new ResizeObserver((changes) => {
    changes.forEach(({ target }) => {
      if (target.scrollWidth > target.clientWidth + 1) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    });
  });

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".bd-article img").forEach(makeLarge);
    document.querySelectorAll(".predict").forEach(makePrediction);
    document.querySelectorAll(".quiz").forEach(makeQuiz);
    makeTerms(document.querySelectorAll(".bd-article a[href*='#term-'][title]"));
    document.querySelectorAll("#search-results").forEach(makeSearch);
    // The words on them are their name.
    document
      .querySelectorAll(".search-button-field, .cell summary")
      .forEach((part) => part.removeAttribute("aria-label"));
    // The theme gives the switches of its sidebar no name.
    document.querySelectorAll(".bd-sidebar details > summary").forEach((summary) => {
      const link = summary.closest("li").querySelector("a");
      summary.setAttribute("aria-label", `Pages under ${link.textContent.trim()}`);
    });
    document
      .querySelectorAll("pre, .formula, .pst-scrollable-table-container")
      .forEach((region) => scrolling.observe(region));
  });
})();
