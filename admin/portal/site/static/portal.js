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
