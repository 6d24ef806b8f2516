<?php
// SPDX-License-Identifier: GPL-2.0-only
//
// Usage: php wordpress.php DIRECTORY install|fill PASSWORD
//
// install: make WordPress's tables by its own installer.  fill: write posts,
// tags and comments, as authors and readers would.  DIRECTORY has WordPress,
// with a wp-config.php for the database; PASSWORD is the one of its user 'admin'.

[, $directory, $what, $password] = $argv;
$_SERVER['HTTP_HOST'] = 'example.org';
$_SERVER['REQUEST_URI'] = '/';
$_SERVER['REMOTE_ADDR'] = '127.0.0.1';
if ($what == 'install')
  define('WP_INSTALLING', true);
require "$directory/wp-load.php";
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
// The installer would ask its web server for a page, and send mail
add_filter('pre_http_request', fn() => new WP_Error('bench', 'no network'));
add_filter('pre_wp_mail', '__return_true');

function done($result)
{
  if (!$result || is_wp_error($result))
  {
    fwrite(STDERR, "wordpress.php failed: " .
           (is_wp_error($result) ? $result->get_error_message()
                                 : "see above") . "\n");
    exit(1);
  }
  return $result;
}

if ($what == 'install')
{
  done(wp_install('A site', 'admin', 'admin@example.org', true, '',
                  $password));
  // For the rules that are made when WordPress starts the next time
  update_option('permalink_structure', '/%postname%/');
  delete_option('rewrite_rules');
  exit(0);
}

$categories = [];
foreach (['News', 'Travel', 'Recipes'] as $name)
  $categories[] = done(wp_insert_term($name, 'category'))['term_id'];
for ($number = 1; $number <= 20; $number++)
{
  $post = done(wp_insert_post([
    'post_title' => "A title $number", 'post_name' => "a-title-$number",
    'post_content' => str_repeat("<p>Some words of text number $number.</p>\n",
                                 50),
    'post_status' => 'publish', 'post_author' => 1,
    'post_date' => sprintf('2020-01-%02d 12:00:00', $number),
    'post_category' => [$categories[$number % 3]],
    'tags_input' => ['tag ' . $number % 7, 'tag ' . $number % 5]], true));
  for ($reader = 1; $reader <= 3; $reader++)
    done(wp_insert_comment([
      'comment_post_ID' => $post, 'comment_author' => "Reader $reader",
      'comment_author_email' => "reader$reader@example.org",
      'comment_content' => "Comment $reader", 'comment_approved' => 1]));
}
