"""The hints of lab 07."""

from distlab.labs.verdict import Hint


class Lab07Hint(Hint):
    """By exercise: `tf_config`, `is_chief`, `diagnosis`, `save`."""

    # TF_CONFIG
    A_CONTAINER = "it is a {kind}. An environment variable holds text."
    NO_TEXT = "it is {value!r}, not a text."
    SINGLE_QUOTES = "it has Python's single quotes. TensorFlow reads JSON: what writes a dictionary as JSON?"
    SHELL_QUOTES = (
        "it begins and ends with a quote. A shell needs such quotes around a text and takes them away; nobody does "
        "that here."
    )
    NO_JSON = "it is not JSON. Let a library write it, not string pieces."
    DUMPED_TWICE = "it is JSON of a text that is itself JSON: it was turned into text twice."
    WRONG_NAMES = (
        "at the top it has the names {names}. TF_CONFIG has two: one says who takes part, one who this process is."
    )
    CLUSTER_NO_DICTIONARY = "`cluster` is not a dictionary: each job, such as worker, has a list of addresses."
    ADDRESS_WITHOUT_LIST = "a job has one text instead of a list of addresses. One address is a list too."
    CLUSTER_OF_ONE = "`cluster` holds only what this process is part of. How does it find the others?"
    ANOTHER_CLUSTER = "`cluster` is not the cluster of the call. It is the same text in every process."
    TASK_NAMES = "`task` must hold two names, type and index, and nothing else."
    ANOTHER_TYPE = "task.type is {type!r}. Is every process of a cluster of the same type?"
    INDEX_IS_TEXT = "task.index is a text. It is a number: where do the quotes come from?"
    INDEX_AMONG_ALL = "task.index is {index}. It counts among the tasks of one type, not among all."
    INDEX_FROM_ONE = "task.index is {index}. From which number does TensorFlow count?"
    ANOTHER_INDEX = "task.index is {index!r}. Which of its job's addresses is this process's own?"

    # The chief
    NO_TRUTH_VALUE = "is_chief gives {value!r}; it must return True or False."
    NO_CHIEF = "nobody says that it is the chief: nothing would be saved."
    ALL_BUT_THE_CHIEF = "all say that they are the chief, except the one that is."
    ALL_CHIEFS = "all {count} say that they are the chief."
    PARAMETER_SERVER_TOO = "{names} say that they are the chief. A parameter server trains nothing."
    SEVERAL_CHIEFS = "{names} say that they are the chief: two would write the same file."
    PARAMETER_SERVER = "{names} would be the chief. A parameter server trains nothing."
    CHIEF_IS_NAMED = "{names} would be the chief. Who is it when the cluster names one?"
    CHIEF_IS_NOT_NAMED = "{names} would be the chief. Which task is the chief when the cluster names none?"

    # Six broken jobs: for each what one sees of the wrong place, and what one sees of the wrong fix in the right place
    NO_DICTIONARY = "`diagnosis` is a dictionary: each letter has a pair (field, fix)."
    NO_PAIR = "choose a pair, (field, fix)."
    NOT_IN_THE_LIST = "{word!r} is not in the list of {kind}."
    NOT_IN_THIS_FIELD = "the fix {fix!r} cannot be done in {field}."
    A_PLACE = "TensorFlow says that an index exceeds the maximum, so compare a number with a length."
    A_FIX = "Both numbers are different already, and one of them names no address."
    B_PLACE = "One line of TensorFlow's log asks for a port."
    B_FIX = "Count the colons in each address."
    C_PLACE = "Each process starts, and process 1 waits forever. Whom does it call, and on which machine?"
    C_FIX = "All addresses have a correct form, but one of them means something else on every machine."
    D_PLACE = "A JSON reader stops at the second character, before it has read any name."
    D_FIX = "It is one line already. Which character is not allowed there?"
    E_PLACE = "The addresses are right and equal everywhere. Two processes use one of them, and nobody uses another."
    E_FIX = "They count from 0 already, and all are numbers. Compare them with each other."
    F_PLACE = "Each text is right by itself. Put the two below each other and compare."
    F_FIX = "Every address is right. Who is worker 0 for process 0, and who for process 1?"

    # Saving
    ANOTHER_ORDER = "{name} calls {calls} in another order than the chief: two different collectives would meet."
    DOES_NOTHING = "{name} does nothing at all, and the chief waits for it forever."
    SAVE_WITHOUT_OTHERS = (
        "the chief calls model.save, and {name} does not. It is a collective: the chief waits forever."
    )
    RESULT_WITHOUT_OTHERS = (
        "the chief calls accuracy.result, and {name} does not. It is a collective: TensorFlow pairs it with whatever "
        "{name} calls next."
    )
    MORE_THAN_THE_CHIEF = "{name} calls {calls}, the chief {expected}."
    NOBODY_SAVES = "nobody calls model.save."
    NOBODY_READS = "nobody reads accuracy.result()."
    NO_MODEL_FILE = "when the chief has finished, there is no model.keras in the folder: it wrote {files} there."
    ANOTHER_MODEL_FILE = "model.keras in the chief's folder is not the file that model.save wrote."
    NO_ACCURACY_FILE = "the chief writes no accuracy.txt into the folder."
    ACCURACY_IS_NO_NUMBER = "accuracy.txt holds {text!r}, not only a number."
    ANOTHER_ACCURACY = "accuracy.txt holds {written}, the accuracy is {expected}."
    RACE = "{name} and the chief write model.keras at the same path: a race, and one of them may lose its file."
    BOTH_WRITE = "{name} and the chief both write {file}. What is done once is for the chief."
    RACE_OF_TWO = (
        "{first} and {second} both save to {path}: a race, even if the file is removed later. Which name does nobody "
        "else have?"
    )
    MORE_FILES = "the chief leaves {files} in the folder too, which must hold model.keras and accuracy.txt only."
    COPY_IN_THE_FOLDER = "{name} leaves {files} in the shared folder, which must hold only the chief's files."
    TEMPORARY_FILES = "{name} leaves {file} in the folder for temporary files: who removes it?"
    FILES_ELSEWHERE = "{name} leaves {file} behind. Other programs can write to that path too."
