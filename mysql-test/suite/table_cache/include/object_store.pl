# SPDX-License-Identifier: GPL-2.0-only
#
# The part of an object store's protocol that the S3 engine uses, for a test that
# has no such store.
#
#   perl object_store.pl PORT PID_FILE
#
# listens at PORT of 127.0.0.1, and ends with the server of PID_FILE. Objects
# are in memory, and all buckets are one. The requests are served one after the
# other: get, head, put, copy and delete of an object, and the list of the objects
# whose names begin with a prefix. Nobody's signature is looked at.

use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;

my ($port, $pid_file)= @ARGV;
open(my $file, '<', $pid_file) or die "object store: $pid_file: $!\n";
my $pid= int(<$file>);
my %objects;
my $xml= '<?xml version="1.0" encoding="UTF-8"?>';
my $date= 'Thu, 01 Jan 2026 00:00:00 GMT';

my $listener= IO::Socket::INET->new(LocalAddr => '127.0.0.1',
                                    LocalPort => $port, Listen => 64,
                                    ReuseAddr => 1)
  or die "object store: port $port: $@\n";
print "listens\n";
open(STDOUT, '>', '/dev/null');

my $ready= IO::Select->new($listener);
while (kill(0, $pid))
{
  next unless $ready->can_read(1);
  my $client= $listener->accept() or next;
  serve($client);
  close($client);
}

sub decode
{
  my ($text)= @_;
  $text =~ s/%([0-9A-Fa-f]{2})/chr(hex($1))/ge;
  return $text;
}

# The name of an object, without the bucket
sub object_name
{
  my ($path)= @_;
  $path =~ s|^/*[^/]*/?||;
  return decode($path);
}

sub serve
{
  my ($client)= @_;
  my $line= <$client>;
  return unless defined $line && $line =~ m|^(\w+) ([^ ?]*)\??(\S*) HTTP|;
  my ($method, $path, $query)= ($1, $2, $3);
  my %header;
  while (defined($line= <$client>) && $line =~ /^([^:]+):\s*(.*?)\r?\n/)
  {
    $header{lc $1}= $2;
  }
  print $client "HTTP/1.1 100 Continue\r\n\r\n" if $header{expect};
  my $body= '';
  read($client, $body, $header{'content-length'}) if $header{'content-length'};
  my ($status, $answer)= answer($method, object_name($path), $query, \%header,
                                $body);
  print $client "HTTP/1.1 $status\r\nContent-Length: ", length($answer),
    "\r\nLast-Modified: $date\r\nETag: \"e\"\r\nConnection: close\r\n\r\n",
    $method eq 'HEAD' ? '' : $answer;
}

# Returns the status and the body
sub answer
{
  my ($method, $name, $query, $header, $body)= @_;
  return ('200 OK', list($query)) if $method eq 'GET' && $name eq '';
  if ($method eq 'PUT')
  {
    my $source= $header->{'x-amz-copy-source'};
    return put($name, $body, '') unless defined $source;
    $source= object_name($source);
    return put($name, $objects{$source}, "$xml<CopyObjectResult/>")
      if exists $objects{$source};
  }
  elsif ($method eq 'DELETE')
  {
    delete $objects{$name};
    return ('204 No Content', '');
  }
  elsif (exists $objects{$name})
  {
    return ('200 OK', $objects{$name});
  }
  return ('404 Not Found', "$xml<Error><Code>NoSuchKey</Code>" .
          '<Message>There is no such object</Message></Error>');
}

sub put
{
  my ($name, $content, $answer)= @_;
  $objects{$name}= $content;
  return ('200 OK', $answer);
}

sub list
{
  my ($query)= @_;
  my %asked= map { my ($name, $value)= split(/=/, $_, 2);
                   ($name => decode($value // '')) } split(/&/, $query);
  my ($prefix, $delimiter)= ($asked{prefix} // '', $asked{delimiter} // '');
  my ($found, %folders)= ('');
  foreach my $name (sort grep { index($_, $prefix) == 0 } keys %objects)
  {
    my $end= $delimiter eq '' ? -1 : index($name, $delimiter, length($prefix));
    if ($end >= 0)
    {
      $folders{substr($name, 0, $end + 1)}= 1;
      next;
    }
    $found.= "<Contents><Key>$name</Key>" .
      '<LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>' .
      length($objects{$name}) . '</Size></Contents>';
  }
  $found.= "<CommonPrefixes><Prefix>$_</Prefix></CommonPrefixes>"
    foreach sort keys %folders;
  return "$xml<ListBucketResult><IsTruncated>false</IsTruncated>$found" .
    '</ListBucketResult>';
}
