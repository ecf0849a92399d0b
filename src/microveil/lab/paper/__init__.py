"""The paper's experiments, reproduced: data sets, figures, and its claims put to the test."""

from microveil.lab.paper.reproduction import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
