"""What languages are called in English, by their ISO 639-1 codes, and some by ISO 639-3 where there is no shorter one."""

from __future__ import annotations

_TABLE = """
aa Afar; ab Abkhazian; ace Acehnese; ach Acholi; ae Avestan; af Afrikaans; ak Akan; am Amharic; an Aragonese; ar Arabic; as Assamese;
ast Asturian; av Avaric; awa Awadhi; ay Aymara; az Azerbaijani; ba Bashkir; bal Baluchi; bam Bambara; ban Balinese; bbj Ghomala;
be Belarusian; bem Bemba; ber Berber; bg Bulgarian; bh Bihari; bho Bhojpuri; bi Bislama; bik Bikol; bm Bambara; bn Bengali; bo Tibetan;
br Breton; bs Bosnian; bua Buryat; ca Catalan; ce Chechen; ceb Cebuano; ch Chamorro; chr Cherokee; ckb Central Kurdish; co Corsican;
cr Cree; crh Crimean Tatar; cs Czech; cu Church Slavonic; cv Chuvash; cy Welsh; da Danish; dag Dagbani; de German; din Dinka; dsb Lower Sorbian;
dv Divehi; dyu Dyula; dz Dzongkha; ee Ewe; efi Efik; el Greek; en English; eo Esperanto; es Spanish; et Estonian; eu Basque; ewe Ewe; fa Persian;
fat Fanti; ff Fulah; fi Finnish; fil Filipino; fj Fijian; fo Faroese; fon Fon; fr French; fur Friulian; fy Western Frisian; ga Irish; gaa Ga;
gd Scottish Gaelic; gl Galician; gn Guarani; gsw Swiss German; gu Gujarati; gv Manx; ha Hausa; hau Hausa; haw Hawaiian; he Hebrew; hi Hindi;
hil Hiligaynon; hmn Hmong; ho Hiri Motu; hr Croatian; hsb Upper Sorbian; ht Haitian Creole; hu Hungarian; hy Armenian; hz Herero; ia Interlingua;
iba Iban; ibo Igbo; id Indonesian; ie Interlingue; ig Igbo; ii Sichuan Yi; ik Inupiaq; ilo Iloko; io Ido; is Icelandic; it Italian; iu Inuktitut;
ja Japanese; jv Javanese; ka Georgian; kab Kabyle; kac Kachin; kam Kamba; kbp Kabiye; kea Kabuverdianu; kg Kongo; ki Kikuyu; kin Kinyarwanda;
kj Kuanyama; kk Kazakh; kl Kalaallisut; km Khmer; kmb Kimbundu; kn Kannada; ko Korean; kok Konkani; kr Kanuri; kri Krio; ks Kashmiri; ku Kurdish;
kv Komi; kw Cornish; ky Kyrgyz; la Latin; lad Ladino; lb Luxembourgish; lg Ganda; li Limburgish; lij Ligurian; lmo Lombard; ln Lingala; lo Lao;
loz Lozi; lt Lithuanian; lu Luba-Katanga; lua Luba-Lulua; lug Ganda; luo Luo; lus Mizo; lv Latvian; mad Madurese; mag Magahi; mai Maithili;
mak Makasar; mg Malagasy; mh Marshallese; mi Maori; min Minangkabau; mk Macedonian; ml Malayalam; mn Mongolian; mni Manipuri; mos Mossi; mr Marathi;
ms Malay; mt Maltese; my Burmese; na Nauru; nb Norwegian Bokmål; nd North Ndebele; nds Low German; ne Nepali; new Newari; ng Ndonga; nl Dutch;
nn Norwegian Nynorsk; no Norwegian; nr South Ndebele; nso Northern Sotho; nus Nuer; nv Navajo; ny Nyanja; nya Nyanja; nyn Nyankole; oc Occitan;
oj Ojibwa; om Oromo; or Odia; os Ossetic; pa Punjabi; pag Pangasinan; pam Pampanga; pap Papiamento; pcm Nigerian Pidgin; pi Pali; pl Polish;
ps Pashto; pt Portuguese; qu Quechua; quc Kʼicheʼ; quy Ayacucho Quechua; rm Romansh; rn Rundi; ro Romanian; rom Romany; ru Russian; rup Aromanian;
rw Kinyarwanda; sa Sanskrit; sah Yakut; sat Santali; sc Sardinian; scn Sicilian; sco Scots; sd Sindhi; se Northern Sami; sg Sango; sh Serbo-Croatian;
shn Shan; si Sinhala; sk Slovak; sl Slovenian; sm Samoan; sn Shona; sna Shona; so Somali; sq Albanian; sr Serbian; ss Swati; st Southern Sotho;
su Sundanese; sv Swedish; sw Swahili; swa Swahili; swh Swahili; szl Silesian; ta Tamil; te Telugu; tem Timne; tet Tetum; tg Tajik; th Thai;
ti Tigrinya; tig Tigre; tiv Tiv; tk Turkmen; tl Tagalog; tn Tswana; to Tongan; tpi Tok Pisin; tr Turkish; ts Tsonga; tsn Tswana; tt Tatar;
tum Tumbuka; tw Twi; twi Twi; ty Tahitian; tzm Central Atlas Tamazight; ug Uyghur; uk Ukrainian; umb Umbundu; ur Urdu; uz Uzbek; ve Venda; vec Venetian;
vi Vietnamese; vo Volapük; wa Walloon; war Waray; wo Wolof; wol Wolof; xh Xhosa; xho Xhosa; yi Yiddish; yo Yoruba; yor Yoruba; yue Cantonese;
za Zhuang; zh Chinese; zu Zulu; zul Zulu; zza Zaza
"""

NAMES: dict[str, str] = dict(entry.strip().split(" ", 1) for entry in _TABLE.replace("\n", " ").split(";"))
