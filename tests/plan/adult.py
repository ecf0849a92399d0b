"""A made-up table like the Adult data set: its columns, and categories about as frequent."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

_EDUCATION = (
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad",
    "Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
)  # fmt: skip
_SHARES = (2, 5, 10, 20, 16, 29, 36, 13, 323, 223, 42, 33, 164, 54, 17, 13)
_COUNTRIES = {
    "Mexico": 195, "Philippines": 61, "Germany": 42, "Puerto-Rico": 37, "Canada": 37,
    "El-Salvador": 32, "India": 31, "Cuba": 28, "England": 28, "China": 25, "South": 25,
    "Jamaica": 22, "Italy": 22, "Dominican-Republic": 21, "Japan": 19, "Guatemala": 18,
    "Poland": 18, "Vietnam": 18, "Columbia": 17, "Haiti": 14, "Portugal": 14, "Taiwan": 14,
    "Iran": 12, "Greece": 10, "Nicaragua": 10, "Peru": 9, "Ecuador": 9, "France": 9,
    "Ireland": 7, "Thailand": 6, "Hong": 6, "Cambodia": 6, "Trinadad&Tobago": 5, "Laos": 5,
    "Outlying-US(Guam-USVI-etc)": 4, "Yugoslavia": 5, "Scotland": 4, "Honduras": 4, "Hungary": 4,
    "Holand-Netherlands": 1,
}  # fmt: skip
_GAINS = (3_103, 4_386, 4_650, 5_013, 5_178, 7_298, 7_688, 8_614, 13_550, 14_084, 15_024, 99_999)
_LOSSES = (1_408, 1_485, 1_564, 1_590, 1_602, 1_672, 1_740, 1_848, 1_887, 1_902, 1_977, 2_415)
_Text = NDArray[np.str_]


def adult(records: int = 3_000, seed: int = 1) -> pl.DataFrame:
    """Make the same sample every time. None of them exists."""
    random = np.random.default_rng(seed)

    def of(shares: dict[str, float]) -> _Text:
        chances = np.array(list(shares.values()))
        return np.asarray(random.choice(list(shares), records, p=chances / chances.sum()))

    age = np.minimum(17 + random.gamma(2.5, 8.6, records), 90).astype(int)
    school = random.choice(16, records, p=np.array(_SHARES) / sum(_SHARES))
    married = random.random(records) < np.clip((age - 18) / 35, 0, 0.6)
    single = of({"Never-married": 33, "Divorced": 14, "Separated": 3, "Widowed": 3,
                 "Married-spouse-absent": 1.3})  # fmt: skip
    sex = np.where(random.random(records) < np.where(married, 0.88, 0.5), "Male", "Female")
    couple = np.where(sex == "Male", "Husband", "Wife")
    alone = of({"Not-in-family": 25, "Own-child": 16, "Unmarried": 11, "Other-relative": 3})
    chance = 1 / (1 + np.exp(6.2 - 0.35 * school - 1.6 * married - 0.02 * age))
    rich = random.random(records) < chance
    gain = random.random(records) < np.where(rich, 0.21, 0.04)
    loss = ~gain & (random.random(records) < np.where(rich, 0.1, 0.03))
    return pl.DataFrame({
        "age": age,
        "workclass": of({"Private": 697, "Self-emp-not-inc": 78, "Local-gov": 64, "?": 56,
                         "State-gov": 40, "Self-emp-inc": 34, "Federal-gov": 29,
                         "Without-pay": 0.4, "Never-worked": 0.2}),
        "fnlwgt": np.rint(random.lognormal(12.05, 0.55, records)).astype(int),
        "education": np.array(_EDUCATION)[school],
        "education-num": school + 1,
        "marital-status": np.where(married, "Married-civ-spouse", single),
        "occupation": of({"Prof-specialty": 127, "Craft-repair": 126, "Exec-managerial": 125,
                          "Adm-clerical": 116, "Sales": 112, "Other-service": 101,
                          "Machine-op-inspct": 61, "?": 57, "Transport-moving": 49,
                          "Handlers-cleaners": 42, "Farming-fishing": 31, "Tech-support": 28,
                          "Protective-serv": 20, "Priv-house-serv": 5, "Armed-Forces": 0.3}),
        "relationship": np.where(married, couple, alone),
        "race": of({"White": 854, "Black": 96, "Asian-Pac-Islander": 32,
                    "Amer-Indian-Eskimo": 10, "Other": 8}),
        "sex": sex,
        "capital-gain": np.where(gain, random.choice(_GAINS, records), 0),
        "capital-loss": np.where(loss, random.choice(_LOSSES, records), 0),
        "hours-per-week": np.where(random.random(records) < 0.47, 40, np.clip(
            np.rint(random.normal(41, 16, records)), 1, 99)).astype(int),
        "native-country": of({"United-States": 8_960, "?": 180, **_COUNTRIES}),
        "income": np.where(rich, ">50K", "<=50K"),
    })  # fmt: skip
