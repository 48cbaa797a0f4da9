// The pages work without this module. It adds a button to what is there to be copied.
for (const place of document.querySelectorAll("[data-copy]")) {
  const text = (place.querySelector("code") ?? place).textContent;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(place.querySelector("code") ?? place);
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  const box = document.createElement("div");
  box.className = "copyable";
  if (place.tagName === "PRE") {
    place.replaceWith(box);
    box.append(place, button);
  }
}

// Filters the list of operations and types.
for (const tree of document.querySelectorAll("[data-filter]")) {
  const links = [...tree.querySelectorAll("li a")];
  if (links.length < 8) continue;
  const input = document.createElement("input");
  input.type = "search";
  input.placeholder = "Filter";
  input.setAttribute("aria-label", "Filter operations and types");
  const box = document.createElement("div");
  box.className = "filter";
  box.append(input);
  tree.prepend(box);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const link of links) {
      const text = link.textContent.toLowerCase();
      link.parentElement.hidden = !words.every((word) => text.includes(word));
    }
    for (const group of tree.querySelectorAll(".group")) {
      group.parentElement.hidden = !group.parentElement.querySelector("ul > li:not([hidden])");
    }
  });
}
