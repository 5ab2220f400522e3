# SPDX-License-Identifier: MIT OR Apache-2.0
# Records of records that are replaced in random order, and text that is cut and joined.
use strict;
use warnings;
srand(5);
my $seed = 5;
sub random { $seed = ($seed * 1103515245 + 12345) % 2147483648; return int($seed / 65536) % $_[0] }
my (%table, $total);
for my $i (1 .. 250_000) {
  my $key = "key" . random(20_000);
  if (random(10) < 3) {
    my $old = delete $table{$key};
    $total += length($old->{text}) + @{$old->{list}} if $old;
  } else {
    $table{$key} = {text => "x" x random(300), list => [1 .. random(12)], number => $i};
  }
}
my $text = join ",", map { $table{$_}{number} } sort keys %table;
my @words = split /,/, $text x 8;
my %count;
$count{$_ % 1000}++ for @words;
print "objects $total ", scalar(keys %table), " ", scalar(@words), " ", scalar(keys %count), "\n";
