"""The words of the embedded corpus, English and French, with what may sensibly be said of what. All written for Kente."""

from __future__ import annotations

from dataclasses import dataclass

from kente.data.bilingual.french import FrenchVerb, adjective_forms, conjugate, noun_plural


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    english: str
    english_plural: str
    french: str
    french_plural: str
    feminine: bool
    tags: tuple[str, ...]  # the first is the main class

    @property
    def kind(self) -> str:
        return self.tags[0]

    @property
    def mass(self) -> bool:
        return self.tags[0] in ("food", "drink")


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    english: str
    french: tuple[str, str, str, str]
    before_vowel: str | None  # bel, nouvel, vieil
    before: bool  # stands before its noun
    kinds: frozenset[str]
    comparative: str | None
    use: str  # "attribute" (beside a noun), "predicate" (after "is") or "both"


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    base: str
    third: str
    past: str
    progressive: str
    particle: str | None
    french: FrenchVerb
    frame: str
    objects: tuple[Noun, ...]
    animal: bool  # animals may do it too
    stative: bool  # its past is an imparfait
    options: frozenset[str]  # place, company, manner, ...: what may be added to it
    fodder: tuple[Noun, ...]  # the objects it has when animals do it

    @property
    def name(self) -> str:
        return f"{self.base} {self.particle}" if self.particle else self.base


def english_s(word: str) -> str:
    """The -s of plurals and of the third person."""
    if word.endswith(("s", "x", "ch", "sh")) or word == "go":
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeou":
        return word[:-1] + "ies"
    return word + "s"


# english[/plural] french[/plural] gender main-class,other,tags
_NOUNS = """
man/men homme m person
woman/women femme f person
boy garçon m person,young
girl fille f person,young
child/children enfant m person,young
teacher professeur m person
doctor médecin m person
nurse infirmière f person
baker boulanger m person
farmer fermier m person
student étudiant m person
neighbour voisin m person,own
friend ami m person,own
lawyer avocat m person
actress actrice f person
engineer ingénieur m person
waiter serveur m person
king roi m person,one
queen reine f person,one
hero/heroes héros m person
lady dame f person
tourist touriste m person
mother mère f kin,one
father père m kin,one
brother frère m kin,sibling
sister sœur f kin,sibling
grandmother grand-mère f kin,one
grandfather grand-père m kin,one
uncle oncle m kin,sibling
aunt tante f kin,sibling
cousin cousin m kin,sibling
son fils m kin,sibling
daughter fille f kin,sibling
husband mari m kin,one
wife femme f kin,one
cat chat m animal,pet,drawn
dog chien m animal,pet,drawn
horse cheval m animal,pet,drawn
bird oiseau m animal,drawn
mouse/mice souris f animal,drawn
rabbit lapin m animal,pet,drawn
cow vache f animal,pet,drawn
goat chèvre f animal,pet,drawn
donkey âne m animal,pet,drawn
owl hibou/hiboux m animal,drawn
duck canard m animal,pet,drawn
hamster hamster m animal,pet,drawn
squirrel écureuil m animal,drawn
apple pomme f fruit,fodder,cut,washed
pear poire f fruit,cut,washed
orange orange f fruit,cut,washed
banana banane f fruit,cut
egg œuf m fruit
cake gâteau m fruit,cut,cooked
sandwich sandwich m fruit,cut,cooked
carrot carotte f fruit,fodder,cut,washed
tomato/tomatoes tomate f fruit,cut,washed
peach pêche f fruit,cut,washed
strawberry fraise f fruit,pair,washed
cherry cerise f fruit,pair,washed
lemon citron m raw,cut,washed
onion oignon m raw,cut,washed
bean haricot m fruit,pair,washed
bread pain m food,fodder,cut
cheese fromage m food,fodder,cut
meat viande f food,fodder,cut,cooked
rice riz m food,cooked
soup soupe f food,cooked
salad salade f food,cooked
chocolate chocolat m food
jam confiture f food,cooked
honey miel m food
fish poisson m food,fodder,cut,cooked
water eau f drink,fodder
milk lait m drink,fodder
coffee café m drink,cooked
tea thé m drink,cooked
wine vin m drink
beer bière f drink
lemonade limonade f drink,cooked
book livre m text,held,lost,openable,bought,lent,finished,written
letter lettre f text,held,lost,openable,sent,finished,written
newspaper journal m text,held,bought
novel roman m text,bought,lent,finished,written
magazine magazine m text,held,bought,lent
poem poème m text,finished,written,learnt
story histoire f text,written,told
message message m text,sent,written
car voiture f vehicle,driven,bought,repaired,washed,lent,cleaned,big
bus bus m vehicle,driven,awaited,washed,repaired
truck camion m vehicle,driven,bought,repaired,washed
bicycle vélo m vehicle,bought,repaired,washed,lent
train train m vehicle,awaited
boat bateau m vehicle,bought,repaired,painted,cleaned
plane avion m vehicle,awaited
key clé f thing,held,lost,hidden,lent
bag sac m thing,held,lost,openable,bought,carried,shut
umbrella parapluie m thing,held,lost,bought,lent,openable,shut
cup tasse f thing,held,dish,bought
glass verre m thing,held,dish,bought
plate assiette f thing,held,dish,bought
bottle bouteille f thing,held,dish,bought,openable
knife/knives couteau m thing,held,bought,washed,lent
basket panier m thing,held,bought,carried
box boîte f thing,held,openable,carried,shut,hidden
lamp lampe f thing,bought,broken,repaired
phone téléphone m thing,held,lost,bought,broken,repaired,lent
watch montre f thing,held,lost,bought,broken,repaired
ball ballon m thing,held,lost,bought
pen stylo m thing,held,lost,bought,lent
pencil crayon m thing,held,lost,bought,lent
axe hache f thing,held,bought,lent
gift cadeau m thing,held,openable,carried,hidden,bought,sent
clock horloge f thing,bought,repaired,broken
candle bougie f thing,held,bought
mirror miroir m thing,bought,broken,cleaned
ring bague f thing,held,lost,bought,hidden
computer ordinateur m thing,bought,broken,repaired,lent
toy jouet m thing,held,lost,bought,broken,repaired
table table f furniture,bought,repaired,cleaned,painted
chair chaise f furniture,bought,repaired,cleaned,painted,broken,carried
bed lit m furniture,bought,repaired
wardrobe armoire f furniture,bought,painted,openable,shut,repaired
sofa canapé m furniture,bought,cleaned
shelf/shelves étagère f furniture,bought,painted,cleaned
door porte f part,openable,shut,painted,repaired
window fenêtre f part,openable,shut,washed,broken,repaired
wall mur m part,painted
roof toit m part,repaired,painted
shirt chemise f clothes,washed,bought,lost
coat manteau m clothes,bought,lost,lent
dress robe f clothes,washed,bought,lent
shoe chaussure f clothes,pair,bought,lost,cleaned
boot botte f clothes,pair,bought,lost,cleaned
glove gant m clothes,pair,bought,lost,lent
hat chapeau m clothes,bought,lost,lent
scarf/scarves écharpe f clothes,washed,bought,lost,lent
sweater pull m clothes,washed,bought,lost,lent
skirt jupe f clothes,washed,bought
jacket veste f clothes,washed,bought,lost,lent
tree arbre m plant,planted,drawn
flower fleur f plant,planted,drawn,bought,given
rose rose f plant,planted,drawn,bought,given
star étoile f sky,drawn
guitar guitare f music,played,bought,repaired,lent
piano piano m music,played,bought,repaired
violin violon m music,played,bought,repaired,lent
flute flûte f music,played,bought,lent
trumpet trompette f music,played,bought,lent
film film m art,watched
photo photo f art,watched,sent,found
painting tableau m art,watched,bought
song chanson f art,sung,learnt,heard
radio radio f thing,heard,bought,repaired
lesson leçon f idea,learnt,taught,finished
question question f idea,taught,answered
problem problème m idea,taught
exercise exercice m idea,taught,finished
school école f place,goal,inside
market marché m place,goal
station gare f place,goal
hospital hôpital m place,goal,inside
hotel hôtel m place,goal,inside,seen
library bibliothèque f place,goal,inside,seen
museum musée m place,goal,inside,seen
restaurant restaurant m place,goal,inside
beach plage f place,goal
church église f place,goal,inside,seen
cinema cinéma m place,goal
theatre théâtre m place,goal,seen
airport aéroport m place,goal
office bureau m place,goal,cleaned
farm ferme f place,goal,seen
bakery boulangerie f place,goal,inside
university université f place,goal,seen
garden jardin m place,inside,drawn,seen
kitchen cuisine f place,room,cleaned
bedroom chambre f place,room,cleaned
forest forêt f place,inside
park parc m place,inside
street rue f place,inside
house maison f place,inside,drawn,bought,painted,cleaned,seen
castle château m place,inside,drawn,seen
village village m place,inside,seen
city ville f place,inside,seen
"""


def _noun(line: str) -> Noun:
    english, french, gender, tags = line.split()
    english, _, english_plural = english.partition("/")
    french, _, french_plural = french.partition("/")
    return Noun(
        english,
        english_plural or english_s(english),
        french,
        french_plural or noun_plural(french),
        gender == "f",
        tuple(tags.split(",")),
    )


NOUNS = tuple(_noun(line) for line in _NOUNS.strip().splitlines())
NOUN = {noun.english: noun for noun in NOUNS}
KIND = {kind: tuple(noun for noun in NOUNS if noun.kind == kind) for kind in dict.fromkeys(n.kind for n in NOUNS)}


def tagged(*tags: str) -> tuple[Noun, ...]:
    """The nouns that carry any of the tags (or are named by one), in the order of the lexicon."""
    wanted = frozenset(tags)
    return tuple(noun for noun in NOUNS if noun.english in wanted or not wanted.isdisjoint(noun.tags))


# english french[/feminine[/plural]] before|after comparative(- for none) classes, tags or nouns[ form-before-vowel]
_SPLIT = {
    "OBJECTS": "thing,furniture,clothes,vehicle",
    "COLOURED": "bag,umbrella,cup,plate,basket,box,lamp,ball,pen,pencil,candle,toy,furniture,clothes,vehicle,door,wall",
    "SOILED": "cup,glass,plate,bottle,knife,bag,mirror,clothes,car,bus,truck,train,bicycle,window,table,chair,sofa,street,kitchen,bedroom,wall",
}
_ADJECTIVES = """
small petit before smaller young,animal,fruit,OBJECTS,part,plant,place,music
big grand before bigger dog,horse,cow,bird,cat,OBJECTS,part,tree,place
old vieux/vieille before older man,woman,lady,farmer,doctor,teacher,king,queen,friend,neighbour,lawyer,animal,text,OBJECTS,part,tree,place,art,music vieil
young jeune before younger person,animal
beautiful beau/belle/beaux before - cat,dog,horse,bird,OBJECTS,plant,place,star,art,music bel
new nouveau/nouvelle/nouveaux before - teacher,doctor,nurse,baker,student,neighbour,friend,lawyer,engineer,waiter,text,OBJECTS,part,art,music,hotel,school,museum nouvel
good bon/bonne before - teacher,doctor,friend,student,fruit,food,drink,text,art,restaurant,hotel
bad mauvais before - wine,coffee,soup,fish,novel,film,song,poem,student
pretty joli before prettier girl,dress,skirt,scarf,shirt,hat,house,garden,village,city,flower,rose,cup,lamp,box,ring,bag,basket,painting
long long/longue before longer letter,novel,story,poem,message,film,song,lesson
tall grand after taller person,tree
happy heureux after happier person
sad triste after sadder person,text,art
tired fatigué after - person,animal
kind gentil/gentille before kinder person
intelligent intelligent after - person,dog,cat
famous célèbre after - actress,engineer,doctor,lawyer,king,queen,hero,hotel,museum,restaurant,castle,theatre,city,novel,poem,art
rich riche after richer man,woman,lady,farmer,lawyer,doctor,neighbour,tourist,king,queen,city
strong fort after stronger man,woman,coffee,tea,horse
brave courageux after braver person
polite poli after - person
ill malade after - person,animal
hungry affamé after - animal
heavy lourd after heavier bag,box,basket,gift,furniture
expensive cher/chère after - OBJECTS,wine,meat,cheese,fish,chocolate,book,hotel,restaurant,music
dirty sale after dirtier SOILED,dog,cat,horse
clean propre after cleaner SOILED
empty vide after - cup,glass,plate,bottle,basket,box,bag,wardrobe,street,house,train,bus
red rouge after - COLOURED,rose,apple,flower
blue bleu after - COLOURED,flower
green vert after - COLOURED,apple,pear
yellow jaune after - COLOURED,flower,pear
white blanc/blanche after - COLOURED,cat,dog,horse,rabbit,house,flower,rose,wine,bread
black noir after - COLOURED,cat,dog,horse,cow,coffee,piano
grey gris after - COLOURED,cat,mouse,horse,donkey,rabbit
round rond after - table,clock,mirror,box,window,basket
cold froid after colder soup,meat,rice,water,milk,coffee,tea,lemonade,beer,house,bedroom,church
hot chaud after hotter soup,meat,rice,milk,coffee,tea,water,chocolate,bread
fresh frais/fraîche after - fruit,water,milk,bread,cheese,fish,lemonade
delicious délicieux after - fruit,food,coffee,tea,wine,lemonade
ripe mûr after - apple,pear,orange,banana,tomato,peach,strawberry,cherry
interesting intéressant after - text,art,idea,museum,city,village
funny drôle after funnier text,film,song,photo
boring ennuyeux after - text,film,lesson,exercise
difficult difficile after - idea,poem,novel
easy facile after easier idea
important important after - idea,letter,message,book
modern moderne after - house,kitchen,hotel,hospital,school,museum,station,library,office,airport,university,lamp,furniture,car,train,plane,painting,city
quiet calme after quieter village,street,hotel,beach,park,garden,library,city,horse,dog
dangerous dangereux after - dog,street,forest,city
fast rapide after faster vehicle,horse,dog
slow lent after slower vehicle,donkey
"""


_USES = {"ill": "predicate", "tall": "predicate", "hungry": "attribute", "new": "attribute"}  # "is hungry" is "a faim"


def _adjective(line: str) -> Adjective:
    for name, kinds in _SPLIT.items():
        line = line.replace(name, kinds)
    english, french, place, comparative, kinds, *before_vowel = line.split()
    forms = adjective_forms(*french.split("/"))
    return Adjective(
        english, forms, before_vowel[0] if before_vowel else None, place == "before", frozenset(kinds.split(",")),
        None if comparative == "-" else comparative, _USES.get(english, "both"),
    )  # fmt: skip


ADJECTIVES = tuple(_adjective(line) for line in _ADJECTIVES.strip().splitlines())


def _fits(adjective: Adjective, noun: Noun) -> bool:
    return noun.english in adjective.kinds or not adjective.kinds.isdisjoint(noun.tags)


ADJECTIVES_BEFORE = {noun: tuple(a for a in ADJECTIVES if a.before and _fits(a, noun)) for noun in NOUNS}
ADJECTIVES_AFTER = {
    noun: tuple(a for a in ADJECTIVES if not a.before and a.use != "predicate" and _fits(a, noun)) for noun in NOUNS
}
# "good" after "is" speaks of a person's health ("va bien"), so it is no predicate of people.
PREDICATES = {
    noun: tuple(
        a
        for a in ADJECTIVES
        if a.use != "attribute" and _fits(a, noun) and not (noun.kind == "person" and a.english in ("good", "bad"))
    )
    for noun in NOUNS
}
# What somebody or something may be for a while, and so may be tomorrow.
PASSING = frozenset(
    [
        "happy",
        "sad",
        "tired",
        "ill",
        "rich",
        "famous",
        "strong",
        "dirty",
        "clean",
        "empty",
        "cold",
        "hot",
        "good",
        "delicious",
        "ripe",
        "interesting",
        "difficult",
        "easy",
        "long",
        "expensive",
        "important",
    ]
)
MOODS = tuple(a for a in ADJECTIVES if a.english in ("happy", "sad", "tired", "ill"))
PERSON_PREDICATES = tuple(a for a in PREDICATES[NOUN["man"]] if a.english not in ("rich",))
# "more ... than" of these; colours and the like are not compared.
COMPARED_WITH_MORE = frozenset(
    [
        "beautiful",
        "intelligent",
        "famous",
        "polite",
        "expensive",
        "interesting",
        "boring",
        "difficult",
        "important",
        "modern",
        "dangerous",
    ]
)

# base[ past progressive] [particle] = french, frame, objects by tag, options
_VERBS = """
eat ate eating = manger; direct; fruit food; animal place
drink drank drinking = boire; direct; drink; animal place
buy bought buying = acheter; direct; bought fruit raw food drink clothes; shop for
sell sold selling = vendre; direct; bought fruit raw food drink; shop
see saw seeing = voir; direct; person kin animal thing vehicle place star; animal momentary
find found finding = trouver; direct; held animal lost; place momentary
look_for = chercher; direct; held person animal clothes lost; place
watch watched watching = regarder; direct; person animal watched; animal
listen_to = écouter; direct; person kin heard; -
read read reading = lire; direct; text; place
write wrote writing = écrire; direct; written; place
drive drove driving = conduire; direct; driven; -
wash = laver; direct; washed dish dog horse; place
break broke breaking = casser; direct; broken cup glass plate bottle; momentary
open = ouvrir; direct; openable; momentary
close closed closing = fermer; direct; shut; momentary
take took taking = prendre; direct; held; momentary
carry carried carrying = porter; direct; carried; -
choose chose choosing = choisir; direct; bought clothes film song; shop for
lose lost losing = perdre; direct; lost; place momentary
forget forgot forgetting = oublier; direct; lost held; momentary
hide hid hiding = cacher; direct; hidden; place momentary
repair = réparer; direct; repaired; -
clean = nettoyer; direct; cleaned; -
draw drew drawing = dessiner; direct; drawn; place
paint = peindre; direct; painted; -
prepare prepared preparing = préparer; direct; cooked; for kitchen
cut cut cutting = couper; direct; cut; kitchen
plant = planter; direct; planted; garden
want = vouloir; direct; bought fruit food drink clothes dog cat horse rabbit; stative
have had having = avoir; direct; sibling pet bought lent; stative
like liked liking = aimer; direct; fruit food drink art seen animal book novel poem story; stative generic
hate hated hating = détester; direct; fruit food drink animal; stative generic
love loved loving = aimer; direct; kin child; stative
know knew knowing = connaître; direct; person kin place song poem; stative
wear wore wearing = porter; direct; clothes ring watch; -
help = aider; direct; person kin; place
meet met meeting = rencontrer; direct; person; place momentary
invite invited inviting = inviter; direct; person kin; momentary
call = appeler; direct; person kin; momentary
thank = remercier; direct; person kin; momentary
wait_for = attendre; direct; person kin awaited; place
follow = suivre; direct; person animal; animal
protect = protéger; direct; young sibling animal; -
visit = visiter; direct; seen; company
feed fed feeding = nourrir; direct; pet bird; -
learn = apprendre; direct; learnt; place
understand understood understanding = comprendre; direct; taught learnt text; momentary
finish = finir; direct; finished; momentary
sing sang singing = chanter; direct; sung; place
answer = répondre; to; person kin answered letter message; -
talk_to = parler; to; person kin; place
phone phoned phoning = téléphoner; to; kin friend neighbour doctor lawyer; -
give gave giving = donner; give; held lent given text fruit clothes; -
show showed showing = montrer; give; held art text bought; -
send sent sending = envoyer; give; sent; -
lend lent lending = prêter; give; lent; -
bring brought bringing = apporter; give; held given fruit; -
tell told telling = raconter; give; told; -
explain = expliquer; give; taught; -
put put putting = mettre; put; held; -
play = jouer; instrument; played; place
play = jouer; sport; -; company
speak spoke speaking = parler; language; -; -
learn = apprendre; the-language; -; place
study studied studying = étudier; the-language; -; place
live lived living = habiter; reside; -; stative
go went going = aller; goal; -; company
return = retourner; goal; -; company
travel travelled travelling = voyager; journey; -; company
sleep slept sleeping = dormir; alone; -; animal place well
work = travailler; alone; -; place company well lot
sing sang singing = chanter; alone; -; place company well
dance danced dancing = danser; alone; -; place company well
laugh = rire; alone; -; company lot
cry cried crying = pleurer; alone; -;  lot
run ran running = courir; alone; -; animal walk manner
swim swam swimming = nager; alone; -; animal company manner well
walk = marcher; alone; -; walk manner company
smile smiled smiling = sourire; alone; -; -
shout = crier; alone; -; -
arrive arrived arriving = arriver; alone; -; arrival momentary
leave left leaving = partir; alone; -; manner momentary company
stay = rester; alone; -; place placed
fall fell falling = tomber; alone; -; animal momentary
go_out went going = sortir; alone; -; momentary company
come_back came coming = revenir; alone; -; momentary
get_up got getting = se lever; alone; -; momentary clock
wake_up woke waking = se réveiller; alone; -; momentary clock
go_to_bed went going = se coucher; alone; -; momentary clock
fall_asleep fell falling = s'endormir; alone; -; animal momentary place
rest = se reposer; alone; -; animal place
get_dressed got getting = s'habiller; alone; -; momentary
have_fun had having = s'amuser; alone; -; place company
go_for_a_walk went going = se promener; alone; -; walk company
hurry hurried hurrying = se dépêcher; alone; -; -
sit_down sat sitting = s'asseoir; alone; -; momentary
"""


def _verb(line: str) -> Verb:
    left, right = line.split(" = ")
    french, frame, objects, options = right.split("; ")
    names = left.split()
    base, _, particle = names[0].partition("_")
    past = names[1] if len(names) > 1 else base + "ed"
    progressive = names[2] if len(names) > 2 else base + "ing"
    third = "has" if base == "have" else english_s(base)
    flags = frozenset(options.split())
    nouns = tagged(*objects.split())
    fodder = tuple(noun for noun in nouns if "fodder" in noun.tags or noun.kind == "animal" or "young" in noun.tags)
    return Verb(
        base, third, past, progressive, particle.replace("_", " ") or None, conjugate(french), frame, nouns,
        "animal" in flags, "stative" in flags, flags, fodder,
    )  # fmt: skip


VERBS = tuple(_verb(line) for line in _VERBS.strip().splitlines())
VERB = {(f"{verb.name} {verb.frame}" if verb.frame != "direct" else verb.name): verb for verb in VERBS}

# (first verb, second verb): what people do one after the other with the same thing.
SCRIPTS = (
    "buy eat", "buy drink", "buy read", "buy wear", "buy hide", "take open", "take read", "take hide", "open close", "open read",
    "find take", "find hide", "find read", "wash eat", "wash cut", "cut eat", "prepare eat", "prepare drink", "choose buy", "choose read",
    "break repair", "lose find", "look_for find", "repair sell", "repair paint", "wash sell", "clean paint", "see follow", "see call",
    "see buy", "see take", "see draw", "meet invite", "meet thank", "meet help", "call invite", "call thank", "wait_for help", "follow help", "find feed",
    "see feed", "watch draw", "look_for buy", "forget look_for", "lose look_for", "learn sing", "write read", "see visit", "buy plant", "buy paint", "take wash",
)  # fmt: skip

MALE_NAMES = ("Paul", "Thomas", "Kofi", "Louis", "Adam", "Omar", "Victor", "Kwame")
FEMALE_NAMES = ("Anna", "Alice", "Emma", "Julie", "Ama", "Claire", "Sofia", "Irène")
CITIES = (
    ("Paris", "Paris"),
    ("London", "Londres"),
    ("Geneva", "Genève"),
    ("Lyon", "Lyon"),
    ("Rome", "Rome"),
    ("Brussels", "Bruxelles"),
    ("Dakar", "Dakar"),
    ("Accra", "Accra"),
    ("Montreal", "Montréal"),
)
COUNTRIES = (
    ("France", "en", "France"),
    ("Italy", "en", "Italie"),
    ("Belgium", "en", "Belgique"),
    ("Canada", "au", "Canada"),
    ("Ghana", "au", "Ghana"),
    ("Senegal", "au", "Sénégal"),
    ("Japan", "au", "Japon"),
)
LANGUAGES = (
    ("French", "français"),
    ("English", "anglais"),
    ("Spanish", "espagnol"),
    ("German", "allemand"),
    ("Italian", "italien"),
    ("Japanese", "japonais"),
)
SPORTS = (
    ("football", "au", "football"),
    ("tennis", "au", "tennis"),
    ("chess", "aux", "échecs"),
    ("cards", "aux", "cartes"),
)
