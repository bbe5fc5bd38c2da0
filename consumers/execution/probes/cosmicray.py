"""Mutants of a program by Cosmic Ray itself: mutants(text) returns (operator, program) for each.

The operators are those without arguments. Cosmic Ray has to be installed for the Python that runs this.
"""
import cosmic_ray.plugins
from cosmic_ray.mutating import mutate_code

WITH_ARGUMENTS = ("VariableReplacer", "VariableInserter")


def mutants(text):
    return list(made(text))


def made(text):
    for name in cosmic_ray.plugins.operator_names():
        if name.endswith(WITH_ARGUMENTS):
            continue
        operator, occurrence = cosmic_ray.plugins.get_operator(name)(), 0
        while (mutant := mutate_code(text, operator, occurrence)) is not None:
            yield name, mutant
            occurrence += 1
