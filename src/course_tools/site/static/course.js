// Outputs that wait for a guess, quizzes that mark themselves, terms that show their meaning, pictures to enlarge, the
// search, and what is wider than its place: it folds, or scrolls and can be reached by keyboard.
"use strict";

(() => {
  const element = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };

  // Predictions: the next output, those of the cells right after it, and what the text says of them wait for a guess.

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

  const opens = [];
  const makePrediction = (card, number) => {
    const waiting = waitingAfter(card);
    if (!waiting.length) return;
    const guess = element("input", { type: "text", required: true, autocomplete: "off" });
    const show = element("button", { type: "button", textContent: "Show" });
    const all = element("button", { type: "button", textContent: "Show all on this page" });
    const compare = element("button", { textContent: "Compare" });
    const form = element("form", { className: "guess" }, element("label", {}, "Your guess ", guess), compare, show, all);
    const status = element("span", { className: "guess", tabIndex: -1 });
    const again = element("button", { type: "button", textContent: "Guess again" });
    const open = (...said) => {
      waiting.forEach((part) => part.classList.remove("is-waiting"));
      notes.forEach((note) => { note.hidden = true; });
      status.replaceChildren(...said, "The output and its explanation are below. ", again);
      form.replaceWith(status);
    };
    again.addEventListener("click", () => {
      sessionStorage.removeItem(kept);
      waiting.forEach((part) => part.classList.add("is-waiting"));
      notes.forEach((note) => { note.hidden = false; });
      guessedBefore.remove();
      form.reset();
      status.replaceWith(form);
      guess.focus();
    });
    opens.push(() => form.isConnected && open());
    const guessedBefore = element("p", { className: "guessed" });
    const kept = `${window.location.pathname} ${number}`; // while the page is open, also when it is loaded again
    const compareWith = (guessed) => {
      const said = () => [element("b", { textContent: guessed }), ". "];
      open("Your guess: ", ...said());
      guessedBefore.replaceChildren("You guessed: ", ...said());
      waiting[0].before(guessedBefore);
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      sessionStorage.setItem(kept, guess.value);
      compareWith(guess.value);
      status.focus();
    });
    show.addEventListener("click", () => { open(); status.focus(); });
    all.addEventListener("click", () => {
      const place = card.getBoundingClientRect().top;
      opens.forEach((each) => each());
      window.scrollBy({ top: card.getBoundingClientRect().top - place, behavior: "instant" });
      status.focus({ preventScroll: true });
    });
    // What waits leaves a note, and a calculator can be had without a guess.
    const outputs = waiting.filter((part) => part.matches(".cell_output")).length;
    const what = outputs > 1 ? `The next ${outputs} outputs and their explanation wait` : "The output and its explanation wait";
    const notes = waiting.flatMap((part, place) => {
      part.classList.add("is-waiting");
      const control = part.querySelector(".distlab-calculator :is(input, select)");
      if (place && !control) return [];
      const note = element("p", { className: "waits" }, place ? "" : `${what} for your guess. `);
      if (control) {
        const calculator = element("button", { type: "button", textContent: "Show the calculator" });
        calculator.addEventListener("click", () => {
          part.classList.remove("is-waiting");
          note.hidden = true;
          control.focus();
        });
        note.append(calculator);
      }
      part.before(note);
      return note;
    });
    card.append(form);
    if (sessionStorage.getItem(kept)) compareWith(sessionStorage.getItem(kept));
  };

  // Quizzes

  const makeQuiz = (quiz, number) => {
    const answer = quiz.querySelector(":scope > details.quiz-answer");
    const items = [...quiz.querySelectorAll(":scope > ol > li")];
    const question = quiz.querySelector(".quiz-question");
    const comments = quiz.dataset.comments ? [...answer.querySelectorAll(":scope > :is(ol, ul) > li")] : [];
    question.id = `question-${number}`;
    question.dataset.number = number + 1;
    quiz.setAttribute("role", "group");
    quiz.setAttribute("aria-labelledby", question.id);
    const feedback = element("p", { className: "quiz-feedback" });
    feedback.setAttribute("role", "status");
    const boxes = items.map((item) => {
      const box = element("input", { type: "radio", name: question.id });
      item.replaceChildren(element("label", {}, box, ...item.childNodes));
      return box;
    });
    const check = element("button", { type: "button", textContent: "Check" });
    check.addEventListener("click", () => {
      const chosen = boxes.findIndex((box) => box.checked);
      if (chosen < 0) {
        feedback.textContent = "Choose an answer first.";
        return;
      }
      const isRight = chosen + 1 === Number(quiz.dataset.answer);
      items.forEach((item) => item.classList.remove("is-right", "is-wrong"));
      items[chosen].classList.add(isRight ? "is-right" : "is-wrong");
      const comment = !isRight && comments[chosen]?.cloneNode(true).childNodes; // the answer says why a right one is right
      feedback.replaceChildren(...(comment || [element("strong", { textContent: isRight ? "Right." : "Not this one." })]));
      if (!isRight) return;
      answer.open = quiz.dataset.right = true;
      const counts = ["[data-right]", ""].map((which) => document.querySelectorAll(`.quiz${which}`).length);
      feedback.append(element("strong", { textContent: ` ${counts.join(" of the ")} questions in the text answered.` }));
    });
    answer.before(check);
    answer.before(feedback);
  };

  // The meaning of a term of the glossary, on a card while its link has the pointer or the focus; Escape hides it. A
  // finger shows it with the first tap, follows the link with the second, and hides the card with a tap elsewhere.
  const makeTerms = (links) => {
    const card = element("div", { id: "term-card", hidden: true });
    card.setAttribute("role", "tooltip");
    let tapped;
    const hide = () => { card.hidden = true; tapped = undefined; };
    links.forEach((link) => {
      const meaning = link.title;
      link.removeAttribute("title"); // which would be a second card
      link.setAttribute("aria-describedby", card.id);
      const show = () => {
        card.replaceChildren(element("b", { textContent: link.textContent }), `: ${meaning}`);
        card.hidden = false;
        const box = link.getClientRects()[0], widest = document.documentElement.clientWidth - card.offsetWidth - 8;
        card.style.left = `${window.scrollX + Math.max(8, Math.min(box.left, widest))}px`;
        const fits = box.bottom + card.offsetHeight <= document.documentElement.clientHeight;
        card.style.top = `${window.scrollY + (fits ? box.bottom : box.top - card.offsetHeight)}px`;
      };
      link.addEventListener("pointerenter", (event) => event.pointerType === "touch" || show());
      link.addEventListener("focus", show);
      link.addEventListener("blur", hide);
      link.addEventListener("pointerleave", (event) => event.pointerType === "touch" || event.relatedTarget === card || hide());
      link.addEventListener("click", (event) => {
        if (event.pointerType !== "touch" || tapped === link) return;
        event.preventDefault();
        show();
        tapped = link;
      });
    });
    card.addEventListener("pointerleave", (event) => event.pointerType === "touch" || hide());
    document.addEventListener("pointerdown", ({ target }) => card.contains(target) || tapped?.contains(target) || hide());
    document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
    if (links.length) document.body.append(card);
  };

  // A picture that is shown smaller than it was drawn opens large, above the page; a tap, Escape or "back" closes it.
  const enlarged = element("dialog", { className: "enlarged" });
  enlarged.addEventListener("click", () => enlarged.close());
  enlarged.addEventListener("close", () => history.state === "enlarged" && history.back());
  window.addEventListener("popstate", () => enlarged.close());
  const makeLarge = (picture) => {
    if (picture.closest("a") || picture.clientWidth >= Number(picture.getAttribute("width"))) return;
    const link = element("a", { href: picture.src, title: "Enlarge the picture" });
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // for another window
      event.preventDefault();
      enlarged.setAttribute("aria-label", picture.alt);
      enlarged.replaceChildren(element("button", { type: "button", textContent: "Close" }), picture.cloneNode());
      picture.closest("article").append(enlarged);
      enlarged.showModal();
      history.pushState("enlarged", "");
    });
    picture.replaceWith(link);
    link.append(picture);
  };

  // On a telephone a wide table of texts is a list, whose lines begin with the names of the columns; a dash has no line.
  const makeStack = (table) => {
    const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent);
    const numbers = table.querySelectorAll("thead .text-right").length;
    if (heads.length < 3 || 2 * numbers > heads.length || table.closest("#the-course")) return;
    table.classList.add("stacks");
    table.querySelectorAll("tbody tr").forEach((row) => [...row.cells].forEach((cell, column) => {
      if (/[\p{L}\d]/u.test(cell.textContent)) cell.dataset.head = heads[column];
    }));
  };

  // The search, while one types. A page is found if each word of the query begins one of its words. The line is the one
  // that has the most of the words, in a section whose heading has them too; a row of troubleshooting is a section.
  const STOP_WORDS = `a an and are as at be between by can could do does for from get has have how i if in into is it its me my
    of on one or our run should so that the their there this to use was we what when where which who why will with you your`.split(/\s+/);
  const SAME_WORDS = ["machine|host|node", "several|multiple", "hang|hung|stuck|freez|frozen|stall", "overlap|hide|hiding",
    "communication|all-reduce", "corrupt|damage|half-?written", "crash|die|kill", "α|alpha", "β|beta", "preempt(?:ion)?|spot"];
  const ROOT = document.documentElement.dataset.content_root;
  window.addressOfSymptom = (symptom) => symptom.toLowerCase().match(/[a-z0-9]+/g).slice(0, 7).join("-");
  const withRows = ([anchor, heading, texts, code]) => {
    if (texts[0] !== "Symptom · Cause · Fix") return [[anchor, heading, texts, code]];
    const rows = texts.slice(1).map((row) => row.split(/ · (.*)/));
    return [[anchor, heading, [], code], ...rows.map(([symptom, said]) => [window.addressOfSymptom(symptom), symptom, [said], [], true])];
  };
  let loading;
  const loadWords = () => (loading ||= new Promise((resolve) => {
    window.courseWords = (pages) => resolve(pages.map(([page, sections]) => [page, sections.flatMap(withRows)]));
    document.head.append(element("script", { src: `${ROOT}_static/words.js` }));
  }));

  // Whether one letter is missing, wrong or too many, or two have changed places.
  const isOneTypo = (one, other) => {
    const at = [...one, ""].findIndex((letter, place) => letter !== other[place]);
    const same = (left, right) => one.slice(at + left) === other.slice(at + right);
    return same(1, 1) || same(0, 1) || same(1, 0) || (same(2, 2) && one[at] === other[at + 1] && one[at + 1] === other[at]);
  };

  // "allreduce" finds "all-reduce", "costs" finds "cost", and "crashes" finds "killed".
  const literal = (letter) => letter.replace(/[.*+?^${}()|[\]\\/]/, "\\$&");
  const bare = (word) => word.toLowerCase().replaceAll("-", "").replace(/(?<=[^su])s$/, "");
  const isOneOf = (same, word) => new RegExp(`^(?:${same})(?:e?d?|p?ing)$`).test(bare(word));
  const spelled = (word) => `(?:${SAME_WORDS.find((same) => isOneOf(same, word)) || [...bare(word)].map(literal).join("-?")})`;
  const begin = "(?<![\\p{L}\\d])";
  window.beginningWith = (word) => new RegExp(begin + spelled(word), "iu");

  // A query's words that texts have, those that are nearly one of their names, as that, and those left out.
  window.understood = (words, texts, namesOf) => {
    const known = words.filter((word) => { const pattern = window.beginningWith(word); return texts.some((text) => pattern.test(text)); });
    const names = known.length < words.length ? namesOf().filter((name) => name.length > 3) : [];
    const nearest = words.map((word) => (known.includes(word) ? word : names.find((name) => isOneTypo(bare(name), bare(word)))));
    return [nearest, words.map((word) => (known.includes(word) ? word : undefined))];
  };
  window.saidOf = (words, nearest, found) => {
    const sought = nearest.filter(Boolean), left = words.filter((_, place) => !nearest[place]);
    const shown = sought.every((word) => words.includes(word)) ? []
      : ["Showing results for ", element("b", { textContent: sought.join(" ") }), ": "];
    return [...shown, found, left.length ? `, without: ${left.slice(0, 3).join(", ")}${left.length > 3 ? " …" : ""}` : ""];
  };

  const pagesWith = (sought, pages, glossary) => {
    const spellings = sought.map(spelled);
    const words = spellings.map((word) => new RegExp(begin + word, "iu"));
    const any = new RegExp(`${begin}(${spellings.join("|")})`, "iu");
    const phrase = new RegExp(`${begin}${spellings.join("(?:[\\s-]|\\b(?:an?|at|in|of|on|the|to)\\b)*")}`, "iu");
    const count = (text) => words.filter((word) => word.test(text)).length;

    const find = ([page, sections]) => {
      const [, title] = sections[0] || [], lines = [];
      for (const [anchor, heading, texts, code, isRow] of sections) {
        [heading, ...texts, ...code].forEach((text, index) => {
          const hits = count(text), isText = (index || isRow) && index <= texts.length;
          const worth = 4 * hits + 6 * count(heading.replace(/^\d+\./, "")) + (isText ? 9 : 0) + (text.length > 40 ? 5 : 0) + 2 * phrase.test(text);
          // Under a heading stands what its section begins with.
          if (hits) lines.push({ page, title, anchor, heading, said: text, text: index ? text : texts[0] || "", worth, isRow });
        });
      }
      const together = lines.map((line) => line.said).join("\n");
      if (!lines.length || count(together) < words.length) return [];
      const kind = ["notebooks/", "labs/", "docs/", "index"].findIndex((start) => page.startsWith(start));
      const has = (texts) => texts.some((text) => phrase.test(text));
      const hasAll = (texts) => texts.some((text) => count(text) === words.length);
      const headings = lines.map((line) => line.heading), said = lines.filter((line) => phrase.test(line.said)).length;
      const score = 4 * count(title) + 12 * hasAll([title]) + 16 * has([title]) + 6 * hasAll(headings) + 6 * has(headings)
        + (said && words.length > 1 ? 8 : 0) + 4 * Math.min(said, 5) + 8 * hasAll(lines.map((line) => line.said))
        + Math.log2(lines.length) - (kind && 12);
      const rows = lines.filter((line) => line.isRow), isQuoted = words.length > 1 && has(rows.map((row) => row.heading));
      const symptom = isQuoted + hasAll(rows.map((row) => `${row.heading} ${row.text.split(" · ")[0]}`)); // or in its cause
      const isLast = kind < 0 && title.toLowerCase() !== sought.join(" "); // the reference
      return [{ ...lines.reduce((best, line) => (line.worth > best.worth ? line : best)), score, symptom, isLast }];
    };

    // About 200 letters, from the beginning of a sentence if that is near.
    const marked = (text) => {
      const at = Math.max(0, text.search(any));
      const sentence = text.slice(0, at).search(/(?<=^|[.?!] )(?:(?![.?!] ).){0,110}$/);
      const start = sentence < 0 ? text.lastIndexOf(" ", at - 60) + 1 : sentence;
      const end = (text.indexOf(" ", start + 200) + 1 || text.length + 1) - 1;
      const parts = `${sentence < 0 ? "… " : ""}${text.slice(start, end)}${end < text.length ? " …" : ""}`.split(any);
      return parts.map((part, index) => (index % 2 ? element("mark", { textContent: part }) : part));
    };
    const shown = ({ page, title, anchor, heading, text }) => {
      const item = element("li", {}, element("a", { href: `${ROOT}${page}.html`, textContent: title }));
      const section = element("a", { href: `${ROOT}${page}.html#${anchor}`, textContent: heading });
      item.append(element("p", {}, ...(heading === title ? [] : [section, text && ": "]), ...marked(text)));
      return item;
    };

    const names = [sought.join(" "), sought.join(" ").replace(/s$/, "")].map((name) => `${name} (`);
    const entry = glossary.find((text) => names.some((name) => text.toLowerCase().startsWith(name)));
    const [, term, chapter, meaning] = entry?.match(/^(.*?) \((\d\db?)\): (.*)/) || [];
    // The chapter that explains a term is worth more, and so is a symptom, if it is quoted or its words are rare.
    const found = pages.flatMap(find), isRare = !term && found.length <= 16;
    const worth = ({ page, score, symptom }) =>
      score + (page.startsWith(`notebooks/${chapter}_`) ? 15 : 0) + (symptom + isRare > 1 ? 30 : 0);
    const items = found.sort((one, other) => one.isLast - other.isLast || worth(other) - worth(one)).map(shown);
    const number = items.length, most = 12, parts = [];
    if (term) {
      const anchor = term.toLowerCase().replace(/['’]/g, "").replace(/[^a-z0-9]+/g, "-");
      const link = element("a", { href: `${ROOT}docs/glossary.html#term-${anchor}`, textContent: term });
      parts.push(element("p", { className: "meaning" }, link, `: ${meaning}`));
    }
    parts.push(element("ul", {}, ...items.splice(0, most)));
    const summary = element("summary", { textContent: `${items.length} more` });
    if (items.length) parts.push(element("details", {}, summary, element("ul", {}, ...items)));
    return [number, parts];
  };

  const search = (query, pages) => {
    const asked = query.toLowerCase().split(/[^\p{L}\d.+_-]+/u).filter((word) => /[\p{L}\d]/u.test(word));
    const telling = asked.filter((word) => !STOP_WORDS.includes(word)), words = telling.length ? telling : asked;
    const glossary = pages.find(([page]) => page === "docs/glossary")?.[1].flatMap(([, , texts]) => texts) || [];
    const sections = pages.flatMap(([, ofPage]) => ofPage), headings = sections.map(([, heading]) => heading);
    const texts = sections.flatMap(([, heading, said, code]) => [heading, ...said, ...code]);
    const terms = glossary.map((text) => text.split(" (")[0]);
    const names = () => [...terms, ...[terms, headings, texts].flat().flatMap((text) => text.split(/[^\p{L}\d-]+/u))];
    for (const nearest of window.understood(words, texts, names)) { // without corrections, if they find nothing
      const sought = nearest.filter(Boolean), [number, parts] = sought.length ? pagesWith(sought, pages, glossary) : [0];
      if (number) return [window.saidOf(words, nearest, `${number} ${number > 1 ? "pages" : "page"}`), parts];
      if (words.every((word) => sought.includes(word))) return [["Nothing found; try fewer words."], []];
    }
    return [["Nothing found; check the spelling, or the course does not treat this."], []];
  };

  const makeSearch = (form) => {
    const field = form.querySelector("input"), results = element("div"), status = element("p");
    status.setAttribute("role", "status");
    form.after(element("div", { className: "search-results" }, status, results));
    const answer = async () => {
      const pages = await loadWords(), query = field.value.trim();
      const [said, parts] = query ? search(query, pages) : [[], []];
      status.replaceChildren(...said);
      results.replaceChildren(...parts);
    };
    field.addEventListener("input", answer);
    // The arrows go through the results, to the section of each.
    form.parentElement.addEventListener("keydown", (event) => {
      const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const links = [...results.querySelectorAll("li")].map((item) => [...item.querySelectorAll("a")].at(-1));
      const next = way && [field, ...links][[field, ...links].indexOf(document.activeElement) + way];
      if (!next) return;
      event.preventDefault();
      next.focus();
    });
    if (form.closest("dialog")) return;
    field.value = new URLSearchParams(window.location.search).get("q") || "";
    answer();
  };

  // What a program has printed folds, each line under its own indentation; of a table only what is too long for any
  // screen. course.css makes the letters of this and of code as much smaller as the longest line needs, within limits.
  const LONGEST = 116;
  const fit = (text) => {
    const lines = text.textContent.trimEnd().split("\n"), lengths = lines.map((line) => line.length);
    text.style.setProperty("--columns", Math.max(1, ...lengths.filter((length) => length <= LONGEST)));
    text.classList.toggle("is-short", lines.length <= 20); // a third of a page of paper, which may not divide it
    if (!text.closest(".cell_output") || text.querySelector("span:not(:empty)")) return;
    const isEven = lines.length > 1 && Math.max(...lengths) === Math.min(...lengths);
    const isTable = isEven || lines.filter((line) => /\S {2,}\S/.test(line)).length > lines.length / 3;
    text.replaceChildren(...lines.map((line) => {
      const shown = element("span", { className: isTable && line.length <= LONGEST ? "line" : "line folds", textContent: line || " " });
      shown.style.setProperty("--indent", line.search(/\S|$/));
      return shown;
    }));
    [...text.children].findLast((line) => /\(tolerance \S+\)/.test(line.textContent))?.classList.add("proof");
  };

  // What scrolls can be scrolled by keyboard, and nothing else is a stop of the Tab key; whenever its width changes.
  const scrolling = new ResizeObserver((changes) => {
    changes.forEach(({ target }) => {
      if (target.scrollWidth > target.clientWidth + 1) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    });
  });

  // On paper the answers to all questions are on the last page.
  const makeAnswers = (article) => {
    const answers = [...article.querySelectorAll(".quiz-answer, .distlab-quiz details")].map((answer) => {
      const number = answer.parentElement.dataset.number; // in the quiz at the end
      const name = number ? `Quiz, question ${number}` : `Question ${answer.parentElement.querySelector(".quiz-question").dataset.number}`;
      const copies = [...answer.cloneNode(true).childNodes].filter((part) => part.nodeName !== "SUMMARY");
      return element("div", {}, element("b", { textContent: name }), ...copies);
    });
    if (answers.length) article.append(element("div", { className: "answers" }, element("h2", { textContent: "Answers" }), ...answers));
  };

  // Paper is white.
  let theme;
  window.addEventListener("beforeprint", () => { ({ theme } = document.documentElement.dataset); document.documentElement.dataset.theme = "light"; });
  window.addEventListener("afterprint", () => { document.documentElement.dataset.theme = theme; });

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".bd-article img").forEach(makeLarge);
    document.querySelectorAll(".bd-article pre").forEach(fit);
    document.querySelectorAll(".pst-scrollable-table-container table").forEach(makeStack);
    document.querySelectorAll(".predict").forEach(makePrediction);
    document.querySelectorAll(".quiz").forEach(makeQuiz);
    document.querySelectorAll(".bd-article").forEach(makeAnswers);
    makeTerms(document.querySelectorAll(".bd-article a[href*='#term-'][title]"));
    document.querySelectorAll("form.bd-search").forEach(makeSearch);
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
