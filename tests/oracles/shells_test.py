"""perl's and sqlite's shells with probes on all functions of theirs: what they print is what they
always print."""

import unittest

from oracle import LIBC, Oracle, definitions

SQLITE_LIBRARY = "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0"

# die and eval are longjmp(3)s over many C frames; an alarm breaks into all kinds of calls.
PERL = r"""
use POSIX ();
use Time::HiRes ();
$| = 1;
sub dive { my $n = shift; die { depth => $n } if $n == 0; my $r = dive($n - 1); return $r + 1 }
for my $depth (0, 1, 30, 400) {
  no warnings 'recursion';
  eval { dive($depth); 1 } or print "dived $depth: $@->{depth}\n";
}
my $caught = 0;
for (1 .. 20) {
  eval {
    local $SIG{ALRM} = sub { die "alarm\n" };
    Time::HiRes::ualarm(2000);
    my $x = ''; while (1) { $x = join ',', sort { $b <=> $a } map { $_ * 7 % 31 } 1 .. 50 }
  };
  ++$caught if $@ eq "alarm\n";
}
print "alarms $caught\n";
my ($usr, @status) = (0);
$SIG{USR1} = sub { ++$usr };
for my $n (1 .. 6) {
  my $pid = fork // die;
  if ($pid == 0) { eval { kill USR1 => getppid; dive($n) }; POSIX::_exit($@->{depth} + $n) }
  waitpid($pid, 0);
  push @status, $? >> 8;
}
print "status @status usr ", $usr == 6, "\n";
for my $signal ('KILL', 'TERM', 'SEGV') {
  my $pid = fork // die;
  if ($pid == 0) { kill $signal => $$; sleep 5 while 1 }
  waitpid($pid, 0);
  print "signal ", $? & 127, "\n";
}
open my $pipe, '-|', "echo through a pipe; exit 3" or die;
print <$pipe>;
close $pipe;
print "closed ", $? >> 8, "\n";
print "system ", system("kill -9 \$\$") & 127, "\n";
print `printf %s backticks`, "\n";
my $re = qr/\((?:[^()]++|(?R))*\)/;
print "matched ", length(("(" x 60 . ")" x 60) =~ /($re)/ && $1), "\n";
my @list = sort { $a->[0] <=> $b->[0] } map { [$_ * 7919 % 1009] } 1 .. 1000;
print "sorted $list[0][0] $list[-1][0]\n";
eval { local $SIG{__DIE__} = sub { die "inner: @_" }; die "outer\n" };
print $@;
END { print "end\n" }
exit 7;
"""

SQL = """
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
insert into t select i, printf('row %d', i * 7919 % 3001), i / 3.0 from n;
create index tb on t(b);
create table log(what text);
create trigger tt after update on t begin insert into log values (old.b || '>' || new.b); end;
update t set b = 'changed' where a % 500 = 0;
select count(*), sum(a), max(b), round(avg(c), 6) from t;
select * from log;
begin; delete from t where a > 100; rollback;
select count(*) from t where b like 'row 1%';
with recursive d(n, f) as (select 1, 1 union all select n + 1, f * (n + 1) from d where n < 15)
select max(f) from d;
select a, b from t order by c desc limit 3;
select json_group_array(a) from t where a <= 5;
select upper(substr(b, 1, 4)), length(b), hex(b) from t where a = 1;
pragma integrity_check;
"""
SQLITE = ["/usr/bin/sqlite3", ":memory:", SQL, ".schema", ".dump log", "select nothing from t;"]


class Perl(Oracle):
    def test_perl(self):
        native = self.same(["/usr/bin/perl", "-e", PERL],
                           definitions("/usr/bin/perl") + definitions(LIBC), least=1000, step=25)
        self.assertEqual(native.code, 7, native.err)
        self.assertIn("alarms 20\n", native.out)


class Sqlite(Oracle):
    def test_sqlite(self):
        native = self.same(SQLITE, definitions(SQLITE[0]) + definitions(SQLITE_LIBRARY), least=1000,
                           step=25)
        self.assertIn("\nok\n", native.out)


if __name__ == "__main__":
    unittest.main()
