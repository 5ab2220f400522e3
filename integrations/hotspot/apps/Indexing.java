// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Lucene: threads index made-up documents of words as frequent as in texts, the index is merged and searched.
 *
 *     java -cp ... Indexing THREADS DOCUMENTS
 *
 * What is printed does not depend on which thread added which document when: how many documents a query finds, and the sum of
 * their numbers as they were stored.
 */
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.store.Directory;

public final class Indexing {
  private static final int WORDS = 20_000;

  /** The n-th word has about 1/n of the first one's share. */
  private static String word(Random random) {
    return "w" + (int) (Math.pow(WORDS, random.nextDouble()) - 1);
  }

  private static Document document(int number) {
    final Random random = new Random(number);
    final StringBuilder text = new StringBuilder();
    for (int i = 40 + random.nextInt(200); i > 0; i--) {
      text.append(word(random)).append(i % 13 == 0 ? ". " : " ");
    }
    final Document document = new Document();
    document.add(new StoredField("number", number));
    document.add(new TextField("text", text.toString(), Field.Store.YES));
    return document;
  }

  private static void index(Directory directory, int threads, int documents) throws Exception {
    final IndexWriterConfig config = new IndexWriterConfig(new StandardAnalyzer()).setRAMBufferSizeMB(4);
    try (IndexWriter writer = new IndexWriter(directory, config);
         ExecutorService pool = Executors.newFixedThreadPool(threads)) {
      pool.invokeAll(IntStream.range(0, threads).mapToObj(t -> (Callable<Void>) () -> {
        for (int number = t; number < documents; number += threads) {
          writer.addDocument(document(number));
        }
        return null;
      }).toList()).forEach(Indexing::finished);
      writer.deleteDocuments(new Term("text", "w777"));
      writer.forceMerge(1);
    }
  }

  private static void finished(java.util.concurrent.Future<Void> future) {
    try {
      future.get();
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  private static Query query(int n) {
    final Term one = new Term("text", "w" + n);
    final Term other = new Term("text", "w" + (2 * n + 1));
    return switch (n % 3) {
      case 0 -> new TermQuery(one);
      case 1 -> new PhraseQuery(4, "text", one.text(), other.text());
      default -> new BooleanQuery.Builder().add(new TermQuery(one), BooleanClause.Occur.MUST)
                     .add(new TermQuery(other), BooleanClause.Occur.MUST_NOT).build();
    };
  }

  private static void search(Directory directory, int documents) throws Exception {
    try (DirectoryReader reader = DirectoryReader.open(directory)) {
      final IndexSearcher searcher = new IndexSearcher(reader);
      System.out.println(reader.numDocs() + " documents");
      for (int n = 0; n < 120; n++) {
        final TopDocs found = searcher.search(query(n), documents);
        long sum = 0;
        for (final ScoreDoc hit : found.scoreDocs) {
          final Document document = searcher.storedFields().document(hit.doc);
          sum += document.getField("number").numericValue().longValue() * 31 + document.get("text").hashCode();
        }
        System.out.println(n + ": " + found.scoreDocs.length + " " + sum);
      }
    }
  }

  public static void main(String[] args) throws Exception {
    try (Directory directory = new ByteBuffersDirectory()) {
      index(directory, Integer.parseInt(args[0]), Integer.parseInt(args[1]));
      search(directory, Integer.parseInt(args[1]));
    }
  }
}
