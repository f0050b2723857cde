"""What tables hold, each fact once: the relations that steps, answers, report and checks read."""
