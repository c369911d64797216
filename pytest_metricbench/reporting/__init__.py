"""What is shown: terminal, JUnit, Markdown, HTML."""
