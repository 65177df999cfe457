document.querySelectorAll("img").forEach((image) => image.addEventListener("click", () => alert(image.alt)));
