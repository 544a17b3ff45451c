"""A litmus test of C in other forms: the instructions that gcc and clang make of it.

A test is C of herd7, of which this file reads a part: loads, stores, exchanges, additions, bit-wise
ors and compare-exchanges with explicit orders, and `if (r == 0) {`. It writes the same test for

    AArch64     with the atomic instructions of ARMv8.1 (LSE)
    LL/SC       with loads and stores that are exclusive, as on ARMv8.0
    x86         of 64 bits

Which instruction stands for which access is what both compilers emit at -O2; mapping.c in this
folder has each access once, and `run --mapping` compares. Where an exclusive store fails, the form
gives up: the last register of a thread says that it came to its end, and the condition asks for it.
"""

import re

ORDERS = ('relaxed', 'acquire', 'release', 'acq_rel', 'seq_cst')
KINDS = {'exchange': 'SWP', 'fetch_add': 'LDADD', 'fetch_sub': 'LDADD', 'fetch_or': 'LDSET'}
FORMS = ('AArch64', 'LL/SC', 'x86')


class Bad(Exception):
    """The text is not of the part of C that is read here."""


# ---- Reading -------------------------------------------------------------------------------------

def uncommented(text):
    text = re.sub(r'\(\*.*?\*\)', '', text, flags=re.S)
    return re.sub(r'/\*.*?\*/|//[^\n]*', '', text, flags=re.S)


class Test:
    """Name, initial values, the statements of each thread, and the condition."""

    def __init__(self, text):
        text = uncommented(text)
        found = re.match(r'\s*C (\S+)\s*\{(.*?)\}(.*?)\n(exists\s*.*)\Z', text, flags=re.S)
        if found is None:
            raise Bad('no test of C with `exists`')
        self.name, initial, threads, self.condition = found.groups()
        self.initial = dict(re.findall(r'(\w+)\s*=\s*(-?\w+)\s*;', initial))
        self.threads = []
        for found in re.finditer(r'\nP(\d+) ?\((.*?)\)\s*\{\n(.*?)\n\}', threads, flags=re.S):
            lines = [line.strip() for line in found[3].split('\n') if line.strip()]
            self.threads.append(self.block(lines))

    def block(self, lines):
        """The statements up to the brace that closes the block, which are taken off `lines`."""
        statements = []
        while lines:
            line = lines.pop(0)
            if line in ('}', '} else {'):
                lines.insert(0, line)
                return statements
            statements.append(self.statement(line, lines))
        return statements

    def statement(self, line, lines):
        found = re.fullmatch(r'if \((r\w+) (==|!=) (-?\d+)\) \{', line)
        if found:
            body, other = self.block(lines), []
            if lines and lines[0] == '} else {':
                lines.pop(0)
                other = self.block(lines)
            if not lines or lines.pop(0) != '}':
                raise Bad('an open brace: ' + line)
            return ('if', *found.groups(), body, other)
        found = re.fullmatch(r'(?:int (r\w+) = )?atomic_(\w+)_explicit\((.*)\);', line)
        if not found:
            raise Bad('not read: ' + line)
        result, kind, arguments = found.groups()
        arguments = [one.strip() for one in arguments.split(',')]
        orders = [one[len('memory_order_'):] for one in arguments if one.startswith('memory_order_')]
        values = [one for one in arguments if not one.startswith('memory_order_')]
        if not orders or any(order not in ORDERS for order in orders):
            raise Bad('no order: ' + line)
        if kind == 'compare_exchange_strong':
            values[1] = self.initial.get(values[1], '0')
        return (kind, result, values, orders[0])


# ---- Writing -------------------------------------------------------------------------------------

class Thread:
    """What one thread of an assembly form has used so far, and its lines."""

    def __init__(self, index, names):
        self.names = names
        self.end_label = 'E%d' % index
        self.label_head = 'L%d' % index
        self.lines = []
        self.registers = {}  # of the C test; a compare-exchange has what it found in its one
        self.expected = {}   # of a compare-exchange: the value that it wanted
        self.used = 0
        self.labels = 0

    def new(self):
        self.used += 1
        return self.used - 1

    def label(self):
        self.labels += 1
        return '%s%02d' % (self.label_head, self.labels)


class Arm(Thread):
    end = 'X29=1'

    def __init__(self, index, names, exclusive):
        super().__init__(index, names)
        self.exclusive = exclusive

    def register(self, number):
        return 'W%d' % (9 + number)

    def value(self, text):
        if text in self.registers:
            return self.register(self.registers[text])
        temporary = self.register(self.new())
        self.lines.append('MOV %s,#%s' % (temporary, text))
        return temporary

    def at(self, name):
        return '[X%d]' % self.names.index(name)

    def load(self, to, name, order):
        self.lines.append('%s %s,%s' % ('LDR' if order == 'relaxed' else 'LDAR', to, self.at(name)))

    def store(self, value, name, order):
        self.lines.append('%s %s,%s' % ('STR' if order == 'relaxed' else 'STLR', value,
                                        self.at(name)))

    def ends_of(self, order):
        return ('A' if order in ('acquire', 'acq_rel', 'seq_cst') else '',
                'L' if order in ('release', 'acq_rel', 'seq_cst') else '')

    def exclusively(self, found, name, order, change):
        """Load, let `change` make the new value (None: leave it), and store."""
        acquires, releases = self.ends_of(order)
        self.lines.append('LD%sXR %s,%s' % (acquires, found, self.at(name)))
        leave = self.label()
        value = change(found, leave)
        status = self.register(self.new())
        self.lines.append('ST%sXR %s,%s,%s' % (releases, status, value, self.at(name)))
        self.lines += ['CBNZ %s,%s' % (status, self.end_label), leave + ':']

    def change(self, kind, found, name, value, order):
        if kind == 'fetch_sub':
            value = '-' + value
        value = self.value(value)
        if not self.exclusive:
            self.lines.append('%s%s %s,%s,%s' % (KINDS[kind], ''.join(self.ends_of(order)), value,
                                                found, self.at(name)))
            return
        new = value if kind == 'exchange' else self.register(self.new())

        def compute(old, _):
            if kind != 'exchange':
                self.lines.append('%s %s,%s,%s' % ('ORR' if kind == 'fetch_or' else 'ADD', new, old,
                                                   value))
            return new
        self.exclusively(found, name, order, compute)

    def compare(self, found, name, expected, value, order):
        value = self.value(value)
        if not self.exclusive:
            self.lines += ['MOV %s,#%s' % (found, expected),
                           'CAS%s %s,%s,%s' % (''.join(self.ends_of(order)), found, value,
                                               self.at(name))]
            return

        def check(old, leave):
            self.lines.extend(['CMP %s,#%s' % (old, expected), 'B.NE ' + leave])
            return value
        self.exclusively(found, name, order, check)

    def branch_unless(self, register, equal, number, label):
        self.lines += ['CMP %s,#%s' % (register, number),
                       ('B.NE ' if equal else 'B.EQ ') + label]

    def jump(self, label):
        self.lines.append('B ' + label)

    def finish(self):
        self.lines += ['MOV W29,#1', self.end_label + ':']


class X86(Thread):
    end = 'r15=1'
    free = ('ebx', 'ecx', 'edx', 'esi', 'edi', 'r8d', 'r9d', 'r10d', 'r11d', 'r12d', 'r13d', 'r14d')

    def register(self, number):
        return '%' + self.free[number]

    def value(self, text):
        return self.register(self.registers[text]) if text in self.registers else '$' + text

    def load(self, to, name, _):
        self.lines.append('movl (%s),%s' % (name, to))

    def store(self, value, name, order):
        if order != 'seq_cst':
            self.lines.append('movl %s,(%s)' % (value, name))
        else:
            self.lines += ['movl %s,%%eax' % value, 'xchgl %%eax,(%s)' % name]

    def compare(self, found, name, expected, value, _):
        # herd7 reads the operands of this one in the order of Intel
        new = self.register(self.new())
        self.lines += ['movl $%s,%%eax' % expected, 'movl %s,%s' % (value if value[0] in '$%' else
                                                                   self.value(value), new),
                       'lock cmpxchgl (%s),%s' % (name, new), 'movl %%eax,%s' % found]

    def change(self, kind, found, name, value, order):
        if kind == 'exchange':
            self.lines += ['movl %s,%s' % (self.value(value), found), 'xchgl %s,(%s)' % (found, name)]
            return
        # xadd is not known to herd7, and an or whose old value is used is a compare-exchange anyway
        new = self.register(self.new())
        value = self.value('-' + value if kind == 'fetch_sub' else value)
        self.lines += ['movl (%s),%%eax' % name, 'movl %%eax,%s' % found, 'movl %%eax,%s' % new,
                       '%s %s,%s' % ('orl' if kind == 'fetch_or' else 'addl', value, new),
                       'lock cmpxchgl (%s),%s' % (name, new), 'cmpl %%eax,%s' % found, 'jne ' + self.end_label]

    def branch_unless(self, register, equal, number, label):
        self.lines += ['cmpl $%s,%s' % (number, register), ('jne ' if equal else 'je ') + label]

    def jump(self, label):
        self.lines.append('jmp ' + label)

    def finish(self):
        self.lines += ['movl $1,%r15d', self.end_label + ':']


def write_statement(thread, statement):
    if statement[0] == 'if':
        _, name, relation, number, body, other = statement
        is_expected = relation == '=='
        if name in thread.expected:
            is_expected = is_expected == (number == '1')
            number = thread.expected[name]
        skip, done = thread.label(), thread.label()
        thread.branch_unless(thread.register(thread.registers[name]), is_expected, number, skip)
        write_block(thread, body)
        if other:
            thread.jump(done)
        thread.lines.append(skip + ':')
        write_block(thread, other)
        if other:
            thread.lines.append(done + ':')
        return
    kind, result, values, order = statement
    if kind == 'store':
        thread.store(thread.value(values[1]), values[0], order)
        return
    number = thread.new()
    if kind == 'load':
        thread.load(thread.register(number), values[0], order)
    elif kind == 'compare_exchange_strong':
        thread.compare(thread.register(number), values[0], values[1], values[2], order)
        thread.expected[result] = values[1]
    else:
        thread.change(kind, thread.register(number), values[0], values[1], order)
    thread.registers[result] = number


def write_block(thread, statements):
    for statement in statements:
        write_statement(thread, statement)


def condition_of(test, threads, register_name):
    def one(found):
        thread, name, value = threads[int(found[1])], found[2], found[3]
        register = '%s:%s' % (found[1], register_name(thread, thread.registers[name]))
        if name in thread.expected:
            equal = '%s=%s' % (register, thread.expected[name])
            return equal if value == '1' else '~(%s)' % equal
        return '%s=%s' % (register, value)

    ends = ' /\\ '.join('%d:%s' % (i, threads[i].end) for i in range(len(threads)))
    condition = re.sub(r'(\d+):(r\w+)=(-?\d+)', one, test.condition)
    return 'exists (%s /\\ %s)' % (re.sub(r'^exists\s*', '', condition).strip(), ends)


def write(test, form):
    """Returns the text of the test in one of FORMS."""
    names = [name for name in test.initial if not name.startswith('e_')]
    threads = []
    for index, statements in enumerate(test.threads):
        thread = X86(index, names) if form == 'x86' else Arm(index, names, form == 'LL/SC')
        write_block(thread, statements)
        thread.finish()
        threads.append(thread)
    head = ' '.join('%s=%s;' % (name, test.initial[name]) for name in names)
    if form == 'x86':
        long_name = {'ebx': 'rbx', 'ecx': 'rcx', 'edx': 'rdx', 'esi': 'rsi', 'edi': 'rdi'}
        condition = condition_of(test, threads, lambda thread, number: long_name.get(
            thread.free[number], thread.free[number].rstrip('d')))
    else:
        head += ' ' + ' '.join('%d:X%d=%s;' % (i, n, name) for i in range(len(threads))
                               for n, name in enumerate(names))
        condition = condition_of(test, threads, lambda thread, number: 'X%d' % (9 + number))
    rows = max(len(thread.lines) for thread in threads)
    text = [('X86_64 ' if form == 'x86' else 'AArch64 ') + test.name, '{ %s }' % head,
            ' | '.join('P%d' % i for i in range(len(threads))) + ' ;']
    for i in range(rows):
        text.append(' | '.join(thread.lines[i] if i < len(thread.lines) else ''
                               for thread in threads) + ' ;')
    return '\n'.join(text + [condition, ''])
