import { useCan } from '../../app/session';
import { LinkButton } from '../../parts/Button';
import { ListPage, type Column } from '../../parts/ListPage';
import { Time } from '../../parts/Time';
import { readList, type Document } from '../portal/model';
import { DocumentPage, NewDocument } from './Document';
import { text } from './text';

export const pages = { '/documents': Documents, '/documents/new': NewDocument, '/documents/$id': DocumentPage };

const columns: Column<Document>[] = [
  { id: 'name', label: text.columns.name, cell: (row) => row.name || row.id },
  { id: 'kind', label: text.columns.kind, cell: (row) => text.filters.kinds[row.doc_type] ?? row.doc_type },
  { id: 'api', label: text.columns.api, cell: (row) => row.api_id, wide: true },
  { id: 'size', label: text.columns.size, cell: (row) => text.size(row.size), end: true },
  { id: 'updated', label: text.columns.updated, cell: (row) => <Time at={row.updated_at} />, end: true },
];

function Documents() {
  const may = useCan('editor');
  const create = may && (
    <LinkButton kind="primary" to="/documents/new">
      {text.create}
    </LinkButton>
  );
  return (
    <ListPage<Document>
      title={text.title}
      note={text.note}
      label={text.title}
      things={text.things}
      actions={create}
      queryKey={['documents', 'list']}
      load={(query, signal) => readList<Document>('documentation', { q: query.q, p: query.page, doc_type: query.filters.doc_type }, signal)}
      columns={columns}
      rowKey={(row) => row.id}
      rowName={(row) => row.name}
      rowTo={(row) => `/documents/${encodeURIComponent(row.id)}`}
      edits={may && 'name'}
      search={text.search}
      filters={[{ name: 'doc_type', label: text.filters.doc_type, options: Object.entries(text.filters.kinds).map(([value, label]) => ({ value, label })) }]}
      empty={{ ...text.empty, action: create }}
    />
  );
}
