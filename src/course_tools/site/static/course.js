// Quizzes that mark themselves, and regions that scroll and can be reached by keyboard.
"use strict";

(() => {
  const element = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
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
      const verdict = isRight ? [] : [element("strong", { textContent: "Not this one. " })];
      const comment = comments[chosen] ? [...comments[chosen].cloneNode(true).childNodes] : [];
      feedback.replaceChildren(...verdict, ...(comment.length || !isRight ? comment : [element("strong", { textContent: "Right." })]));
      if (isRight) answer.open = true;
    });
    answer.before(check);
    answer.before(feedback);
  };

  // What scrolls can be scrolled by keyboard, and nothing else is a stop of the Tab key; whenever its width changes.
  const scrolling = new ResizeObserver((changes) => {
    changes.forEach(({ target }) => {
      if (target.scrollWidth > target.clientWidth + 1) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    });
  });

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".quiz").forEach(makeQuiz);
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
