"""What the name of a column says of it, in the languages that statistical offices write in.

A name is evidence, not proof: `propose` weighs it against the values.
"""

import re
import unicodedata
from collections.abc import Callable, Collection
from typing import Literal

Says = Literal["person", "contact", "key", "unit", "place", "code", "category", "scale", "measure"]
"""A person's name; a phone number or address; a key; a unit such as a household, whose number is a
key; a postal code; a code of something; a category; a scale, such as a mark; an amount or count."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PERSON = _words("""
    name names fullname surname lastname firstname forename givenname middlename maiden initials
    vorname nachname familienname zuname geburtsname rufname nom prenom noms prenoms apellido
    apellidos cognome nome naam achternaam voornaam navn fornavn etternavn namn fornamn
    efternamn ssn nin passport reisepass personalausweis dni nif nie cpf curp avs ahv svnr bsn
    cpr personnummer fodselsnummer codicefiscale siren siret
""")
_NAMED_THINGS = _words("""
    region country state city town county province district canton kanton departement department
    municipality commune gemeinde product drug brand species variable industry sector diagnosis
    occupation job school hospital ward stadt land pays ville
""")
_CONTACT = _words("""
    email mail phone telephone telefon telefono telephonenumber tel mobile mobil handy fax cell
    address adresse anschrift adresa direccion indirizzo street strasse rue calle via hausnummer
    housenumber iban bic ip url homepage website username login password twitter vin
""")
_KEY = _words("""
    id ids key uid uuid guid hid pid hhid oid rid cid eid sid fid iid nid identifier ident
    identification identifiant identificador identificativo kennung kennziffer kennzeichen
    serial serialno rownames rowname rowid rownum obsno recno lfd lfdnr caseno hhno hhnr idno
    idnum idnr idhh idpers idind unnamed nquest
""")
_KEY_ALONE = _words("row rows index idx obs observation record case ref reference")
_NUMBER = _words("number no nr num numero nro nbr nummer nummern numer")
_OF = _words("of de di der von per des")
_UNIT = _words("""
    household haushalt menage hogar vivienda huishouden hushall husholdning famiglia hh hhold
    person persona personne individual individuo individu indiv respondent patient paciente
    customer kunde client cliente member employee mitarbeiter student subject proband case fall
    account konto compte firm company unternehmen betrieb entreprise empresa establishment plant
    dwelling policy contract vertrag order invoice rechnung facture claim transaction encounter
    versicherter versichert antrag dossier farmer nurse doctor physician arzt teacher driver
    user passenger participant donor tenant borrower beneficiary insured booking ticket
    utility supplier provider versorger lieferant
""")
_WHOSE = _UNIT - _words("""
    case fall compte firm company unternehmen betrieb entreprise empresa establishment plant
    dwelling policy contract vertrag order invoice rechnung facture claim transaction encounter
    dossier nurse doctor physician arzt teacher booking ticket vivienda logement antrag
    utility supplier provider versorger lieferant
""")
_WHOSE_STEMS = _words("""
    h p hh pers person persons cust customer user pat patient stud student sub subj subject
    respondent resp household house account acct client emp employee member mem parent
    participant donor hhmem kunden haushalts personen patienten ind indiv individual
""")
_WHOSE_KEY = _words("""
    ssn nin dni nif nie cpf curp avs ahv svnr bsn cpr personnummer fodselsnummer codicefiscale mrn
    idhh idpers idind pid hid hhid
""")
_TWO_MEANINGS = _words("subject account konto member")
_THING = _words("""
    product products produkt produit producto prodotto article artikel articulo item items sku
    asin ean isbn gtin upc part school schule hospital clinic krankenhaus shop store filiale
    branch device vehicle doctor physician nurse arzt teacher interviewer enumerator cluster psu
    ssu ea village course brand drug substance ticket site centre center team area tract parcel
    model station airport line route catalogue catalog price vendor supplier merchant seller
""")
_YEARS_COUNTED = re.compile(r".*(yrs?|years?|jahren?|annees?|anni|anos)|(yrs?|years?).*")
_EDUCATION = re.compile(r".*(educ|schul|school|bildung|istruzione|etudes|estudios).*|edu.*")
_YEAR = frozenset(("year", "jahr", "annee", "anno", "ano", "jaar", "yr", "syear"))
_PLACE = _words("""
    zip zipcode zip5 postcode postal postalcode plz postleitzahl codepostal codigopostal npa
    postnummer postnr
""")
_STEMS_OF_IDS = _words("""
    h p hh pers person persons cust customer user case rec record uniq unique fam family ind
    indiv individual obs emp employee member mem pat patient stud student sub subj subject
    respondent resp household house dw dwelling firm company comp plant estab client account
    acct order trans transaction session visit enc encounter hosp hospital school teacher parent
    mother father spouse orig new old my data sample survey panel participant donor loan policy
    claim invoice product item store shop branch device vehicle ea psu ssu hhmem mid kunden
    haushalts personen betriebs patienten fall unternehmens
""")
_CODE = _words("""
    code codes cod kode codigo codice schluessel type typ tipo class klasse classe clase
    category categorie kategorie categoria cat group gruppe groupe grupo grp status stand flag
    indicator indikator dummy kostenstelle yesno level stufe niveau nivel
""")
_CODE_IN_FRONT = _words("""
    code codigo codice type tipo typ categorie categoria classe clase groupe grupo niveau nivel
    status
""")
_CATEGORY = _words("""
    sex sexe sexo sesso gender geschlecht geslacht kon kjonn race ethnic ethnicity ethnie
    religion konfession language langue sprache idioma lingua lang nationality nationalitaet
    nationalite nacionalidad staatsangehoerigkeit citizenship citizen country land pays pais
    paese region regions state bundesland county kreis province provincia district bezirk
    distrito canton kanton commune comune gemeinde municipio municipality city stadt ville
    ciudad town departement department dept abteilung urban rural urbrur urbanrural urbanization
    marital maritl civil familienstand zivilstand matrimonial matrimoniale estado relat relation
    relationship relate verwandtschaft parente parentesco occupation occ job beruf profession
    ocupacion professione csp isco isic nace naics sic industry branche wirtschaftszweig sector
    secteur sektor employment empstat labour labor roof walls wall dach wasser water electcon
    electricity strom toilet fuel heating heizung ownership owner housing logement rechtsform
    legal diagnosis diagnose diagnostic icd drg ward station treatment therapy outcome cause
    causes discharge insurance payer stratum strata strat schicht strate wave welle vague
    quarter quartal trimestre month monat mois mes weekday wochentag season shift smoker smoking
    raucher fumeur disabled disability pregnant married employed migrant migration party partei
    vote colour color farbe blood occp indp socp naicsp pobp puma mar marst relp relshipp rac
    statefip countyfip fips metro empstat classwkr bpl hispan ind
""")
_SCALE = _words("""
    education educ edu schooling bildung ausbildung schulabschluss abschluss estudios grade note
    marks rating satisfaction zufriedenheit health gesundheit sante likert rank quintile decile
    quintil dezil importance trust frequency
""")
_MEASURE = _words("""
    age alter edad eta leeftijd alder aalder years jahre annees anni anos months hours stunden
    heures horas ore days tage jours dias giorni minutes seconds weeks wochen income incomes
    einkommen revenu revenus ingreso ingresos reddito inkomen inkomst wage wages salary salaries
    salaire salaires salario gehalt lohn earnings pay bonus tax taxes steuer steuern impot
    impots amount amt betrag montant importe importo price preis prix precio prezzo cost costs
    kosten cout costo expend expenditure expenditures expenses ausgaben depenses gastos spese
    savings ersparnis value val wert valeur valor total sum summe somme balance saldo solde debt
    schulden dette loan credit kredit rent miete loyer alquiler affitto turnover umsatz sales
    ventas profit gewinn benefice assets capital kapital revenue size groesse taille height
    koerpergroesse length width depth bmi score points punkte rate ratio percent percentage
    prozent share quote count counts anzahl zahl children child kids kinder kind enfants hijos
    figli siblings geschwister persons personen personnes personas members employees
    beschaeftigte beschaeftigten effectif effectifs empleados dipendenti staff rooms zimmer
    raeume pieces beds betten cars vehicles autos visits besuche stays nights naechte
    temperature pressure pulse puls cholesterol glucose dose distance area flaeche surface km
    kwh quantity qty menge quantite duration dauer duree experience hhsize hsize famsize nchild
    nkids claims orders quality qualite weight gewicht poids consumption verbrauch volume
    mileage damage schaden benefit benefits pension rente allowance contribution contributions
""")
_COUNTS = _words("number num no nr n nb nombre anzahl count")
_WEIGHT = _words("""
    weight weights gewicht gewichte gewichtung gewichtungsfaktor poids ponderation pond
    ponderacion peso pesi weging vikt vekt
""")
_WEIGHT_ALONE = _words("""
    weights gewichtung gewichtungsfaktor ponderation ponderacion hochrechnung
    hochrechnungsfaktor weighting pweight fweight dweight anweight iweight rweight pspwght pweights
""")
_SURVEY = _words("""
    sampling sample survey household hh person persons individual indiv design final base
    analysis calibrated calibration cross longitudinal grossing haushalt haushalts personen
    stichprobe erhebung sondage enquete menage hogar selection nonresponse replicate population
    pop raking trimmed poststrat
""")
_FACTORS = (("expansion", "factor"), ("raising", "factor"), ("grossing", "factor"),
            ("facteur", "extrapolation"), ("factor", "expansion"), ("fator", "expansao"),
            ("inflation", "factor"))  # fmt: skip
_BODY = _words("""
    body birth baby kg kilo kilos kilogram kilograms gram grams pounds lb lbs
    koerper geburts corps naissance net gross product item parcel
    height patient child mother newborn vehicle
""")
_KNOWN = _words("""
    birth birthday birthdate dob born geburt geburtsdatum geburtsjahr naissance nacimiento nascita
    age alter edad eta leeftijd alder aalder sex sexe sexo sesso gender geschlecht geslacht kon
    kjonn race ethnic ethnicity ethnie religion konfession nationality nationalitaet nationalite
    nacionalidad staatsangehoerigkeit citizenship citizen region regions state bundesland county
    kreis province provincia district bezirk distrito canton kanton commune comune gemeinde
    municipio municipality city stadt ville ciudad town country land pays pais paese marital
    familienstand zivilstand matrimonial married occupation job beruf profession ocupacion
    professione education educ bildung schooling children child kids kinder kind enfants hijos figli
    hhsize hsize famsize nchild language sprache langue idioma lingua employer arbeitgeber
    admission admitted aufnahme discharge discharged entlassung hispan
""")
_ABBREVIATED_WEIGHT = re.compile(
    r"\w*wgh?ts?|wt[a-z]{2,}|(p|f|hh|per|fam|ind|asec|final|sample|samp|pers)wts?"
)
_ENDS_OF_IDS = ("id", "no", "nr", "num", "key")
_COMPOUND_ENDS = ("nummer", "kennung", "kennziffer", "nr")
_PLAIN_CODE = _words("code codes cod kode codigo codice schluessel")
_SHORTEST_INSIDE = 5  # letters of a word that is found within a compound


def tokens(name: str) -> tuple[str, ...]:
    """Split a name into plain lower-case words.

    Examples
    --------
    >>> tokens("ori_hid"), tokens("HouseholdNumber"), tokens("Straße (Geschäft)")
    (('ori', 'hid'), ('household', 'number'), ('strasse', 'geschaeft'))
    """
    spelled = name
    for letter, plain in (("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss"), ("ø", "o")):
        spelled = spelled.replace(letter, plain).replace(letter.upper(), plain)
    letters = unicodedata.normalize("NFKD", spelled)
    letters = "".join(c for c in letters if not unicodedata.combining(c))
    letters = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", letters)
    return tuple(re.findall(r"[a-z]+", letters.lower()))


def what_it_says(name: str) -> Says | None:
    """Return what a name says its column holds; None if it says nothing.

    Examples
    --------
    >>> [what_it_says(name) for name in ("PersonID", "zip_code", "n_children", "x", "hhcivil")]
    ['key', 'place', 'measure', None, 'category']
    """
    parts = tokens(name)
    if not parts:
        return None
    return next((says for says, is_said in _READINGS if is_said(parts)), None)


def says_sampling_weight(name: str) -> bool | None:
    """Whether a name says sampling weight; None if it may be the weight of a body as well.

    Examples
    --------
    >>> [says_sampling_weight(name) for name in ("AFNLWGT", "birth_weight", "weight")]
    [True, False, None]
    """
    parts = tokens(name)
    if any(_ABBREVIATED_WEIGHT.fullmatch(part) or _holds(part, _WEIGHT_ALONE) for part in parts):
        return True
    if any(set(pair) <= set(parts) for pair in _FACTORS):
        return True
    if not any(part in _WEIGHT or part.endswith(("weight", "gewicht", "wt")) for part in parts):
        return False
    if _has(parts, _BODY) or any(part.startswith(("koerper", "geburts", "body")) for part in parts):
        return False
    if _has(parts, _SURVEY) or any(part.startswith(("haushalt", "person")) for part in parts):
        return True
    return None


def label_says_weight(label: str) -> bool | None:
    """Whether the label of a column says sampling weight, or the weight of a body; None if neither.

    Examples
    --------
    >>> labels = ("Household cross-sectional weight", "Weight in kg", "Income")
    >>> [label_says_weight(label) for label in labels]
    [True, False, None]
    """
    if says_sampling_weight(label):
        return True
    parts = tokens(label)
    return False if _has(parts, _WEIGHT) and _has(parts, _BODY) else None


def says_education(text: str) -> int:
    """Say whether a name or label is of education: 2 if it is of its years, 1 if it may be.

    Examples
    --------
    >>> [says_education(name) for name in ("educ_years", "yrschool", "education", "years")]
    [2, 2, 1, 0]
    """
    parts = tokens(text)
    if not any(_EDUCATION.fullmatch(part) for part in parts):
        return 0
    return 2 if any(_YEARS_COUNTED.fullmatch(part) for part in parts) else 1


def says_whose(name: str) -> bool:
    """Whether a name says that its column is the key of persons, households or their accounts.

    Examples
    --------
    >>> [says_whose(name) for name in ("PatientNr", "hhid", "ssn", "invoice_no", "persons")]
    [True, True, True, False, False]
    """
    parts = tokens(name)
    if what_it_says(name) not in ("key", "unit", "person"):
        return False
    if len(parts) == 1 and _has(parts, _TWO_MEANINGS):
        return False
    return _has(parts, _WHOSE | _WHOSE_KEY) or any(map(_is_key_of_people, parts))


def names_a_thing(name: str) -> bool:
    """Whether a name says that what its column numbers is a thing, or a place.

    Examples
    --------
    >>> names_a_thing("product_id"), names_a_thing("x1")
    (True, False)
    """
    return _has(tokens(name), _THING | _NAMED_THINGS)


def says_year(name: str) -> bool:
    """Whether a name says that its column holds years."""
    return _has(tokens(name), _YEAR)


def says_known(name: str) -> bool:
    """Whether a name says that others may know what its column holds of a person.

    Examples
    --------
    >>> [says_known(name) for name in ("BirthDate", "zip_code", "geschlecht", "blood_pressure")]
    [True, True, True, False]
    """
    parts = tokens(name)
    return _has(parts, _KNOWN) or _is_place(parts) or any(_ends(part, _KNOWN) for part in parts)


def _is_key_of_people(part: str) -> bool:
    if any(part.removesuffix(end) in _WHOSE_STEMS for end in _ENDS_OF_IDS if part != end):
        return True
    return part.endswith(_COMPOUND_ENDS) and any(
        part.startswith(word) for word in _WHOSE if len(word) >= _SHORTEST_INSIDE
    )


def _has(parts: tuple[str, ...], words: Collection[str]) -> bool:
    return any(part in words for part in parts)


def _holds(part: str, words: Collection[str]) -> bool:
    """Whether a compound, as German has them, holds a word."""
    return any(len(word) >= _SHORTEST_INSIDE and word in part for word in words)


def _ends(part: str, words: Collection[str]) -> bool:
    return any(len(word) >= _SHORTEST_INSIDE and part.endswith(word) for word in words)


def _names_a_person(parts: tuple[str, ...]) -> bool:
    if parts == ("nombre",):  # a name in Spanish, a number in French
        return True
    if not _has(parts, _PERSON) and not parts[-1].endswith("name"):
        return False
    return not _has(parts, _NAMED_THINGS)


def _counts(parts: tuple[str, ...]) -> bool:
    """Whether a name begins like "number of children"; "number of the household" is a key."""
    if len(parts) < 2 or parts[0] not in _COUNTS:
        return False
    rest = [part for part in parts[1:] if part not in _OF]
    return bool(rest) and rest[-1] not in _UNIT and not _has(tuple(rest), _KEY)


def _is_key(parts: tuple[str, ...]) -> bool:
    first, last = parts[0], parts[-1]
    others = parts[:-1]
    if _has(parts, _KEY) or any(_is_compound_id(part) for part in parts):
        return True
    if len(parts) == 1 and first in _KEY_ALONE:
        return True
    if last in _NUMBER:
        return not _has(others, _MEASURE | _CATEGORY | _SCALE)
    if last.endswith(_COMPOUND_ENDS) and len(last) > 3:
        return True
    if (last in _PLAIN_CODE or first in _PLAIN_CODE) and _has(parts, _UNIT):
        return True
    return first in _NUMBER and last in _UNIT


def _is_compound_id(part: str) -> bool:
    """Whether a word is short for the key of something: hhid, custno, casenum."""
    stems = [part.removesuffix(end) for end in _ENDS_OF_IDS if part != end]
    return part in ("idnumber", "idcode") or any(
        stem != part and stem in _STEMS_OF_IDS for stem in stems
    )


def _is_place(parts: tuple[str, ...]) -> bool:
    return "".join(parts) in _PLACE or _has(parts, _PLACE)


def _is_code(parts: tuple[str, ...]) -> bool:
    return parts[-1] in _CODE or parts[0] in _CODE_IN_FRONT or _ends(parts[-1], _CODE)


def _anywhere(words: Collection[str]) -> Callable[[tuple[str, ...]], bool]:
    return lambda parts: _has(parts, words)


def _inside(words: Collection[str]) -> Callable[[tuple[str, ...]], bool]:
    return lambda parts: any(_holds(part, words) for part in parts)


_READINGS: tuple[tuple[Says, Callable[[tuple[str, ...]], bool]], ...] = (
    ("place", _is_place),
    ("contact", _anywhere(_CONTACT)),
    ("person", _names_a_person),
    ("measure", _counts),
    ("key", _is_key),
    ("code", _is_code),
    ("measure", lambda parts: parts[-1] in _MEASURE),
    ("unit", lambda parts: parts[-1] in _UNIT),
    ("code", _anywhere(_CODE)),
    ("measure", _anywhere(_MEASURE)),
    ("category", _anywhere(_CATEGORY)),
    ("scale", _anywhere(_SCALE)),
    ("measure", _inside(_MEASURE)),
    ("category", _inside(_CATEGORY)),
    ("scale", _inside(_SCALE)),
)
"""The first reading that fits a name counts: the most certain stand first."""
